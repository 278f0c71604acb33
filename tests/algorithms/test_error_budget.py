"""The shares of a sequence of tests, worked by hand, and what they are for: few false acceptances."""

from __future__ import annotations

import random
from functools import cache

import pytest

from groundrule.algorithms.error_budget import ErrorBudget, looks_of
from groundrule.algorithms.sign_flip import sign_flip_p


def levels(budget, accepted):
    """Of the tests to come, which accept or not as given."""
    found = []
    for one in accepted:
        found.append(budget.level)
        budget = budget.after(one)
    return found


def test_shares_fall_from_test_to_test():
    # 0.08 x 3 / (3 x 4), (4 x 5), (5 x 6), (6 x 7)
    expected = [0.02, 0.012, 0.008, 0.0057142857]
    assert levels(ErrorBudget(0.08, 3), [False] * 4) == pytest.approx(expected)


def test_half_of_alpha_is_for_the_first_tests():
    assert sum(levels(ErrorBudget(0.08, 3), [False] * 3)) == pytest.approx(0.04)


def test_all_shares_stay_below_alpha():
    assert sum(levels(ErrorBudget(0.08, 3), [False] * 2997)) == pytest.approx(0.08 * (1 - 3 / 3000))


def test_a_test_that_accepts_hands_its_level_on():
    assert levels(ErrorBudget(0.08, 3), [True, False]) == pytest.approx([0.02, 0.032])


def test_levels_add_up_as_long_as_tests_accept():
    assert levels(ErrorBudget(0.08, 3), [True] * 3) == pytest.approx([0.02, 0.032, 0.04])


def test_a_test_that_does_not_accept_uses_up_what_it_was_handed():
    assert levels(ErrorBudget(0.08, 3), [True, False, False]) == pytest.approx([0.02, 0.032, 0.008])


def test_a_budget_is_not_changed_by_what_comes_after_it():
    budget = ErrorBudget(0.08, 4)
    budget.after(True)
    assert (budget.done, budget.handed_on) == (0, 0.0)


def test_tests_side_by_side_have_the_shares_of_a_sequence():
    # 0.08 x 3 / (3 x 4), (4 x 5), (5 x 6)
    assert ErrorBudget(0.08, 3).levels(3) == pytest.approx([0.02, 0.012, 0.008])


def test_the_first_of_those_side_by_side_has_what_was_handed_on():
    # 0.08 x 3 / (4 x 5), (5 x 6), (6 x 7), and 0.02 from the test before
    assert ErrorBudget(0.08, 3).after(True).levels(3) == pytest.approx([0.032, 0.008, 0.0057142857])


def test_the_level_of_the_next_test_is_the_first_of_those_side_by_side():
    assert ErrorBudget(0.08, 3, done=1, handed_on=0.02).level == pytest.approx(0.032)


@pytest.mark.parametrize(
    ("accepted", "handed_on"),
    [
        ((True, True, True), 0.04),
        ((True, False, True), 0.028),
        ((False, True, False), 0.012),
        ((False, False, False), 0.0),
    ],
)
def test_all_that_accept_side_by_side_hand_their_levels_on(accepted, handed_on):
    after = ErrorBudget(0.08, 3).after(*accepted)
    assert (after.done, after.handed_on) == (3, pytest.approx(handed_on))


def test_the_first_test_after_those_side_by_side_has_their_levels():
    # 0.08 x 3 / (6 x 7), (7 x 8), and 0.02 and 0.008 from the first and the last of three
    assert ErrorBudget(0.08, 3).after(True, False, True).levels(2) == pytest.approx(
        [0.0337142857, 0.0042857143]
    )


def test_what_was_handed_on_is_gone_where_the_first_of_those_side_by_side_does_not_accept():
    budget = ErrorBudget(0.08, 3, done=3, handed_on=0.02)
    # 0.08 x 3 / (7 x 8), the share of the second
    assert budget.after(False, True).handed_on == pytest.approx(0.0042857143)


def test_what_was_handed_on_goes_on_where_the_first_of_those_side_by_side_accepts():
    budget = ErrorBudget(0.08, 3, done=3, handed_on=0.02)
    assert budget.after(True, False).handed_on == pytest.approx(0.0257142857)


def test_without_a_test_what_was_handed_on_waits():
    budget = ErrorBudget(0.08, 3, done=3, handed_on=0.02)
    assert budget.after() == budget


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, float("nan")])
def test_an_alpha_that_is_no_probability_is_refused(alpha):
    with pytest.raises(ValueError, match="alpha is"):
        ErrorBudget(alpha, 4)


def test_a_budget_for_no_tests_is_refused():
    with pytest.raises(ValueError, match="half is 0; plan for 1 test or more"):
        ErrorBudget(0.05, 0)


def test_looks_have_their_parts_by_what_is_new_at_them():
    assert looks_of(0.04, [8, 16, 32]) == [0.01, 0.01, 0.02]


def test_a_single_look_has_the_whole_level():
    assert looks_of(0.04, [5]) == [0.04]


@pytest.mark.parametrize("looks", [[8, 16, 32], [1, 2, 3, 7], [4, 5, 60]])
def test_looks_add_up_to_the_level(looks):
    assert sum(looks_of(0.05, looks)) == pytest.approx(0.05)


def test_a_look_that_cannot_reach_its_part_leaves_it_to_the_next_one():
    # Eight units give 1 in 256 = 0.0039 at best, and the first part is 0.002.
    assert looks_of(0.008, [8, 16, 32]) == pytest.approx([0.0, 0.004, 0.004])


def test_a_look_that_just_reaches_its_part_keeps_it():
    assert looks_of(4 / 256, [8, 16, 32]) == [1 / 256, 1 / 256, 2 / 256]


def test_the_last_look_keeps_what_is_left_even_out_of_its_reach():
    assert looks_of(0.01, [2, 4]) == [0.0, 0.01]


@pytest.mark.parametrize("looks", [[], [0, 8], [8, 8], [16, 8], [-1]])
def test_looks_that_do_not_rise_are_refused(looks):
    with pytest.raises(ValueError, match="rise from above 0"):
        looks_of(0.05, looks)


ALPHA, SEQUENCES, LOOKS = 0.2, 3000, [5, 8]


@cache
def p_of(differences):
    """The order of differences does not matter, so few lists need to be counted."""
    return sign_flip_p(differences)


def is_accepted(rng, level, gain):
    """A test with two looks at differences that lie symmetrically around `gain`."""
    data = [gain + rng.choice([-1.0, -0.5, 0.5, 1.0]) for _ in range(LOOKS[-1])]
    parts = zip(LOOKS, looks_of(level, LOOKS), strict=True)
    return any(p_of(tuple(sorted(data[:seen]))) <= part for seen, part in parts)


def share_with_a_false_acceptance(rounds):
    """Of many runs of rounds, with tests side by side in each, those in which a test without a gain accepts."""
    rng, erred = random.Random(7), 0
    for _ in range(SEQUENCES):
        budget, is_wrong = ErrorBudget(ALPHA, 1), False
        for gains in rounds:
            levels = budget.levels(len(gains))
            accepted = [is_accepted(rng, *test) for test in zip(levels, gains, strict=True)]
            is_wrong |= any(one and gain <= 0 for one, gain in zip(accepted, gains, strict=True))
            budget = budget.after(*accepted)
        erred += is_wrong
    return erred / SEQUENCES


SLACK = 3 * (ALPHA * (1 - ALPHA) / SEQUENCES) ** 0.5
"""Three standard errors: 0.022."""


@pytest.mark.parametrize(
    "gains",
    [[0.0] * 4, [2.0, 0.0, 2.0, 0.0], [2.0, 2.0, 0.0, 0.0]],
    ids=["nothing helps", "every other helps", "the first two help"],
)
def test_a_sequence_seldom_accepts_what_does_not_help(gains):
    assert 0.02 < share_with_a_false_acceptance([[gain] for gain in gains]) <= ALPHA + SLACK


@pytest.mark.parametrize(
    "rounds",
    [
        [[0.0] * 3] * 5,
        [[0.0, 2.0]] * 5,
        [[2.0] * 3, *[[0.0] * 3] * 4],
        [[2.0] * 3, [0.0, 2.0, 2.0], [0.0] * 3],
    ],
    ids=["nothing helps", "every other helps", "the first round helps", "most help at first"],
)
def test_rounds_of_tests_side_by_side_seldom_accept_what_does_not_help(rounds):
    assert 0.05 < share_with_a_false_acceptance(rounds) <= ALPHA + SLACK
