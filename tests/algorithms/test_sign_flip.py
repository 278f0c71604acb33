"""The sign-flip test against counts worked by hand and by brute force."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from groundrule.algorithms.sign_flip import STEPS, sign_flip_p


def counted_one_by_one(whole):
    """The share of all signs whose sum reaches the observed one."""
    sums = [sum(s * w for s, w in zip(signs, whole, strict=True)) for signs in signs_of(len(whole))]
    return sum(total >= sum(whole) for total in sums) / len(sums)


def signs_of(count):
    return itertools.product((-1, 1), repeat=count)


def test_eight_equal_gains_are_one_in_256():
    assert sign_flip_p([0.3] * 8) == 1 / 256


def test_eight_equal_losses_are_certain():
    assert sign_flip_p([-0.3] * 8) == 1.0


def test_a_single_gain_is_even_odds():
    assert sign_flip_p([0.2]) == 0.5


def test_four_differences_two_of_them_tied_in_size():
    # The sum is 1.2. Reached by 0.8 + 0.4 + 0.2 + 0.2, and twice by 0.8 + 0.4 with the small ones opposed: 3 of 16.
    assert sign_flip_p([0.8, 0.4, 0.2, -0.2]) == 3 / 16


def test_sums_that_equal_the_observed_one_count_as_reached():
    # Of +-0.5 +-0.5 +-0.5 +-0.5 the sum 0 is reached by 1 + 4 + 6 of 16.
    assert sign_flip_p([0.5, 0.5, -0.5, -0.5]) == 11 / 16


def test_a_difference_of_nothing_changes_nothing():
    assert sign_flip_p([0.5, 0.25, 0.0]) == sign_flip_p([0.5, 0.25]) == 0.25


def test_order_does_not_matter():
    assert sign_flip_p([0.1, -0.4, 0.8]) == sign_flip_p([0.8, 0.1, -0.4])


@pytest.mark.parametrize("seed", range(30))
def test_it_counts_what_brute_force_counts(seed):
    rng = random.Random(seed)
    whole = [rng.randint(-STEPS, STEPS) for _ in range(rng.randint(0, 9))] + [STEPS]
    assert sign_flip_p([w / STEPS for w in whole]) == counted_one_by_one(whole)


@pytest.mark.parametrize("seed", range(10))
def test_it_counts_what_brute_force_counts_where_many_are_tied(seed):
    rng = random.Random(seed)
    whole = [rng.choice([-2, -1, 0, 1, 2]) for _ in range(8)] + [2]
    assert sign_flip_p([w / 2 for w in whole]) == counted_one_by_one(whole)


def test_the_scale_does_not_matter():
    assert sign_flip_p([8e30, 4e30, 2e30, -2e30]) == sign_flip_p([8e-30, 4e-30, 2e-30, -2e-30]) == 3 / 16


@pytest.mark.parametrize("differences", [[], [0.0], [0.0] * 20], ids=["none", "one zero", "zeros"])
def test_where_nothing_differs_nothing_is_shown(differences):
    assert sign_flip_p(differences) == 1.0


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
def test_a_difference_that_is_not_finite_is_refused(wrong):
    with pytest.raises(ValueError, match="differences must be finite"):
        sign_flip_p([0.1, wrong, 0.2])


def test_a_bound_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="differences must be finite"):
        sign_flip_p([0.1], bound=math.nan)


def test_sixty_four_equal_gains_are_one_in_two_to_the_sixty_four():
    assert sign_flip_p([1.0] * 64) == 2.0**-64


def test_sixty_four_differences_follow_the_binomial():
    # 40 gains and 24 losses of one size: a sum of 16 or more takes 40 or more gains of 64.
    expected = sum(math.comb(64, gains) for gains in range(40, 65)) / 2**64
    assert sign_flip_p([0.1] * 40 + [-0.1] * 24) == expected


def test_differences_are_measured_from_the_bound():
    # From -0.25 these lie 0.5, 0.25 and 0.25 above: one of eight.
    assert sign_flip_p([0.25, 0.0, 0.0], bound=-0.25) == 1 / 8


def test_differences_that_all_lie_on_the_bound_show_nothing():
    assert sign_flip_p([-0.25, -0.25, -0.25], bound=-0.25) == 1.0


def test_what_is_above_nothing_may_be_below_a_bound():
    assert sign_flip_p([0.125] * 4, bound=0.25) == 1.0
