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
        budget = budget.after(accepted=one)
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
    budget.after(accepted=True)
    assert (budget.done, budget.handed_on) == (0, 0.0)


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


def share_with_a_false_acceptance(gains):
    """Of many sequences of tests, those in which a test without a gain accepts."""
    rng, erred = random.Random(7), 0
    for _ in range(SEQUENCES):
        budget, is_wrong = ErrorBudget(ALPHA, len(gains)), False
        for gain in gains:
            accepted = is_accepted(rng, budget.level, gain)
            is_wrong |= accepted and gain <= 0
            budget = budget.after(accepted=accepted)
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
    assert 0.02 < share_with_a_false_acceptance(gains) <= ALPHA + SLACK
