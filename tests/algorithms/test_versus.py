"""Two policies on the same prompts: worked by hand."""

from __future__ import annotations

import pytest

from groundrule.algorithms.versus import versus


def test_means_differences_and_wins_are_means_over_prompts() -> None:
    found = versus([[(0.2, 0.6), (0.4, 0.4)], [(0.9, 0.5)]])

    assert (found.prompts, found.pairs) == (2, 3)
    assert found.first == pytest.approx((0.3 + 0.9) / 2)
    assert found.second == pytest.approx((0.5 + 0.5) / 2)
    assert found.difference.value == pytest.approx((0.2 - 0.4) / 2)
    assert found.win_rate.value == pytest.approx((0.75 + 0.0) / 2)


def test_level_answers_are_half_a_win_each() -> None:
    assert versus([[(0.5, 0.5)]]).win_rate.value == 0.5


def test_a_prompt_without_pairs_is_left_out() -> None:
    assert versus([[], [(0.0, 1.0)]]).prompts == 1


def test_without_any_pair_there_is_no_result() -> None:
    assert versus([[], []]) is None


def test_the_interval_is_over_prompts() -> None:
    found = versus([[(0.0, 1.0)]] * 6)

    assert (found.difference.low, found.difference.high) == (1.0, 1.0)


def test_with_few_prompts_there_is_no_interval() -> None:
    assert versus([[(0.0, 1.0)]] * 4).difference.low is None
