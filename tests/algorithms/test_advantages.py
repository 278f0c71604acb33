"""Advantages against golden numbers, and what must hold whatever the formula."""

from __future__ import annotations

import random

import pytest

from groundrule.algorithms.advantages import ADVANTAGES, advantages, group_std, tie_band

FOUR = [0.98, 0.20, 0.05, 0.96]
ARTICLE = [1.0] * 4 + [0.0] * 12


def approx(*values: float) -> object:
    return pytest.approx(list(values), abs=6e-6)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("group_std", (0.87950, -0.70665, -1.01168, 0.83883)),
        ("population_std", (1.01556, -0.81597, -1.16818, 0.96859)),
        ("mean_only", (0.4325, -0.3475, -0.4975, 0.4125)),
        ("leave_one_out", (0.57667, -0.46333, -0.66333, 0.55)),
        ("leave_one_out_std", (1.18197, -0.87214, -1.49173, 1.10154)),
        ("relative", (0.78995, -0.63470, -0.90868, 0.75342)),
        ("floored", (1.01556, -0.81597, -1.16818, 0.96860)),  # No epsilon.
    ],
)
def test_golden_numbers_of_four_rewards(kind: str, expected: tuple[float, ...]) -> None:
    assert advantages(FOUR, kind=kind) == approx(*expected)


def test_unbiased_std_with_a_larger_epsilon() -> None:
    assert group_std(FOUR, epsilon=1e-4) == approx(0.87932, -0.70651, -1.01147, 0.83866)


def test_every_formula_is_among_the_golden_numbers() -> None:
    assert set(ADVANTAGES) == {
        "group_std", "population_std", "mean_only", "leave_one_out", "leave_one_out_std", "relative", "floored",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "right", "wrong"), [("population_std", 1.73205, -0.57735), ("group_std", 1.67705, -0.55902)]
)
def test_four_right_answers_of_sixteen(kind: str, right: float, wrong: float) -> None:
    assert advantages(ARTICLE, kind=kind) == pytest.approx([right] * 4 + [wrong] * 12, abs=1e-5)


def test_three_rewards_with_a_spread_above_the_floor() -> None:
    assert advantages([0.97, 0.45, 0.05]) == approx(1.27439, -0.10620, -1.16819)
    assert advantages([0.97, 0.45, 0.05], kind="mean_only") == approx(0.48, -0.04, -0.44)


def test_a_spread_below_the_floor_is_divided_by_the_floor() -> None:
    assert advantages([0.51, 0.50, 0.49]) == approx(0.1, 0.0, -0.1)


def test_order_is_kept_under_the_floor() -> None:
    high, middle, low = advantages([0.502, 0.5015, 0.50])

    assert high > middle > low  # type: ignore[operator]


def test_unscored_members_stay_none_and_do_not_move_the_mean() -> None:
    assert advantages([1.0, None, 0.0, None], kind="mean_only") == [0.5, None, -0.5, None]


def test_a_group_without_scores_has_no_advantages() -> None:
    assert advantages([None, None]) == [None, None]


def test_an_empty_group_has_no_advantages() -> None:
    assert advantages([]) == []


@pytest.mark.parametrize("kind", ADVANTAGES)
def test_equal_rewards_teach_nothing(kind: str) -> None:
    assert advantages([0.25, 0.25, 0.25, 0.25], kind=kind) == [0.0, 0.0, 0.0, 0.0]


@pytest.mark.parametrize("kind", ADVANTAGES)
def test_a_group_of_one_teaches_nothing(kind: str) -> None:
    assert advantages([0.7], kind=kind) == [0.0]


@pytest.mark.parametrize("kind", ADVANTAGES)
def test_members_that_are_not_scored_can_leave_a_group_of_one(kind: str) -> None:
    assert advantages([None, 0.7], kind=kind) == [None, 0.0]


def test_leave_one_out_divides_by_nothing_where_the_others_agree() -> None:
    assert advantages([1.0, 0.0, 0.0], kind="leave_one_out_std")[0] == 0.0


def test_relative_advantages_are_zero_where_nothing_was_right() -> None:
    assert advantages([0.0, 0.0], kind="relative") == [0.0, 0.0]


def test_noise_makes_a_group_s_advantages_smaller() -> None:
    assert advantages([1.0, 0.0], reliability=0.25) == [0.25, -0.25]


def test_an_unreliable_group_teaches_nothing() -> None:
    assert advantages([1.0, None, 0.0], reliability=0.0) == [0.0, None, 0.0]


def test_rewards_within_the_noise_are_tied_at_their_mean() -> None:
    # 0.52 and 0.50 are less than 0.1 x sqrt 2 apart; 0.9 is far from both.
    assert tie_band([0.52, 0.9, 0.50], 0.1) == approx(0.51, 0.9, 0.51)


def test_the_closest_rewards_are_tied_first() -> None:
    # 0.24 joins 0.3 (0.06 < 0.1 x sqrt 2); their mean 0.27 is then 0.13 from 0.4, beyond 0.1 x sqrt 1.5.
    assert tie_band([0.24, 0.3, 0.4], 0.1) == approx(0.27, 0.27, 0.4)


def test_large_clusters_are_told_apart_where_single_rewards_are_not() -> None:
    assert tie_band([0.4, 0.52], 0.1) == approx(0.46, 0.46)
    assert tie_band([0.4] * 4 + [0.52] * 4, 0.1) == approx(*[0.4] * 4, *[0.52] * 4)


def test_a_tie_band_never_turns_an_order_around_and_keeps_the_mean() -> None:
    rng = random.Random(1)
    for _ in range(300):
        rewards = sorted(rng.random() for _ in range(8))
        banded = tie_band(rewards, 0.15)
        assert banded == sorted(banded)
        assert sum(banded) == pytest.approx(sum(rewards))


def test_a_tie_band_wider_than_the_group_leaves_no_difference() -> None:
    assert tie_band([0.97, 0.45, 0.05], 2.0) == approx(0.49, 0.49, 0.49)


@pytest.mark.parametrize("width", [0.0, 0.2])
def test_a_tie_band_narrower_than_the_gaps_changes_nothing(width: float) -> None:
    assert tie_band([0.97, 0.45, 0.05], width) == [0.97, 0.45, 0.05]


def test_no_rewards_have_no_ties() -> None:
    assert tie_band([], 0.1) == []


def test_advantages_tie_rewards_within_their_noise() -> None:
    tied = advantages([0.52, None, 0.9, 0.50], noise=0.1)
    assert tied == advantages([0.51, None, 0.9, 0.51])
    assert tied[0] == tied[3]


def test_a_group_within_its_noise_teaches_nothing() -> None:
    assert advantages([0.52, 0.5], noise=0.1) == approx(0.0, 0.0)
