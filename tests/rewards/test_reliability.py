"""Measures of agreement against published examples, and on what cannot be measured."""

import random

import pytest

from groundrule.rewards.reliability import (
    SlotEffect,
    flip_rate,
    krippendorff_alpha,
    noise_of_mean,
    reliability,
    slot_effect,
    spread,
)

# Four raters of six targets, Shrout and Fleiss (1979), table 2.
SHROUT_FLEISS = [[9, 6, 8, 7, 10, 6], [2, 1, 4, 1, 5, 2], [5, 3, 6, 2, 6, 4], [8, 2, 8, 6, 9, 7]]
# Four observers of twelve units, Krippendorff (2011), "Computing Krippendorff's alpha-reliability".
KRIPPENDORFF = [
    [1, 2, 3, 3, 2, 1, 4, 1, 2, None, None, None],
    [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, None, 3],
    [None, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, None],
    [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, None],
]


def test_reliability_is_the_published_icc_of_the_mean():
    assert reliability(SHROUT_FLEISS) == pytest.approx(0.4428, abs=5e-5)


def test_reliability_by_hand():
    # Means 0.75 and 0.25, variance 0.125. Within: 2 x (0.05^2 x 2) over 2 degrees of freedom, halved.
    assert reliability([[0.8, 0.3], [0.7, 0.2]]) == pytest.approx(1 - 0.0025 / 0.125)


def test_noise_larger_than_the_spread_is_no_reliability():
    assert reliability([[0.9, 0.1, 0.5], [0.1, 0.9, 0.5]]) == 0.0


def test_passes_that_agree_fully_are_fully_reliable():
    assert reliability([[0.9, 0.1], [0.9, 0.1]]) == 1.0


def test_equal_scores_everywhere_contradict_nothing():
    assert reliability([[0.1, 0.1, 0.1]] * 3) == 1.0


@pytest.mark.parametrize("passes", [[], [[0.9, 0.1]], [[0.9, 0.1], [0.8, None]], [[0.9], [0.1]]])
def test_reliability_is_unknown_without_two_items_scored_twice(passes):
    assert reliability(passes) is None


def test_an_item_that_misses_a_pass_counts_with_the_passes_it_has():
    # Means 0.75, 0.25, 0.5: variance 0.0625. Within variance 0.005, times the mean of 1/2, 1/2 and 1.
    noise = 0.005 * (0.5 + 0.5 + 1.0) / 3
    assert reliability([[0.8, 0.3, 0.5], [0.7, 0.2, None]]) == pytest.approx(1 - noise / 0.0625)


def test_items_without_any_score_are_left_out():
    assert reliability([[0.8, 0.3, None], [0.7, 0.2, None]]) == reliability([[0.8, 0.3], [0.7, 0.2]])


def test_noise_of_a_mean_is_pooled_over_the_items():
    # Variances within the items 0.02 and 0.00, mean 0.01, over two passes.
    assert noise_of_mean([[0.6, 0.3], [0.8, 0.3]]) == pytest.approx(0.005**0.5)


def test_noise_of_one_pass_is_unknown():
    assert noise_of_mean([[0.6, 0.3]]) is None


def test_spread_is_each_items_deviation_over_the_passes():
    assert spread([[0.6, 0.3, 0.1], [0.8, 0.3, None]]) == [pytest.approx(0.02**0.5), 0.0, None]


def test_flip_rate_counts_pairs_in_another_order():
    assert flip_rate([0.9, 0.5, 0.1], [0.9, 0.1, 0.5]) == pytest.approx(1 / 3)


def test_reversed_scores_flip_every_pair():
    assert flip_rate([0.1, 0.2, 0.3], [0.3, 0.2, 0.1]) == 1.0


def test_pairs_within_the_tie_band_in_either_reading_do_not_count():
    assert flip_rate([0.9, 0.85, 0.1], [0.8, 0.9, 0.1], tie=0.05) == 0.0


def test_pairs_that_lack_a_score_do_not_count():
    assert flip_rate([0.9, None, 0.1], [0.1, 0.5, 0.9]) == 1.0


def test_flip_rate_of_ties_is_unknown():
    assert flip_rate([0.5, 0.5], [0.9, 0.1]) is None


def test_slot_effect_is_the_first_place_minus_the_last():
    found = slot_effect([[0.8, 0.7, 0.6], [0.4, 0.3, 0.2]])
    assert found == SlotEffect(pytest.approx(0.2), pytest.approx(0.0, abs=1e-9), pytest.approx(0.0), 2)


def test_slot_effect_by_hand():
    # Centred: 0.2, 0, -0.2 and 0, 0, 0 over the places 1/2, 0, -1/2: slope 0.2, residuals +-0.1 four times,
    # 6 points - 2 means - 1 slope = 3 degrees of freedom, sum of squared places 1.
    found = slot_effect([[0.7, 0.5, 0.3], [0.5, 0.5, 0.5]])
    assert found.slope == pytest.approx(0.2)
    assert found.stderr == pytest.approx((0.04 / 3) ** 0.5)
    assert found.p_value == pytest.approx(0.0833, abs=5e-5)  # z = sqrt 3


def test_a_judge_without_favourites_shows_no_slot_effect():
    rng = random.Random(1)
    found = slot_effect([[rng.random() for _ in range(8)] for _ in range(400)])
    assert abs(found.slope) < 0.04
    assert found.p_value > 0.05


def test_a_known_slot_effect_is_found_within_its_error():
    rng = random.Random(1)
    calls = [[rng.gauss(0.5 + 0.1 * (3.5 - place) / 7, 0.1) for place in range(8)] for _ in range(400)]
    found = slot_effect(calls)
    assert abs(found.slope - 0.1) < 2 * found.stderr
    assert found.p_value < 1e-6


def test_places_without_a_score_are_left_out_of_the_slot_effect():
    assert slot_effect([[0.8, None, 0.6], [0.4, 0.3, 0.2]]).slope == pytest.approx(0.2)


@pytest.mark.parametrize("calls", [[], [[0.5]], [[0.5, 0.4]], [[None, 0.4, None], [0.5, 0.4]]])
def test_slot_effect_is_unknown_without_a_degree_of_freedom(calls):
    assert slot_effect(calls) is None


def test_alpha_is_the_published_value():
    # Forty pairable values. Units that disagree: 2,2,3,2 and 1,2,3,4 and 1,1,2,1, with m / (m - 1) x sum of
    # squares = 1 + 6 2/3 + 1. All values: 9 ones, 13 twos, 10 threes, 5 fours, 3 fives: sum of squares 56.
    by_hand = 1 - ((1 + 20 / 3 + 1) / 40) / (56 / 39)
    assert round(by_hand, 3) == 0.849
    assert krippendorff_alpha(KRIPPENDORFF) == pytest.approx(by_hand)


def test_alpha_of_opposite_raters_is_negative():
    # Within each item (0.8)^2 / 2 = 0.32; of all four values 0.64 / 3.
    assert krippendorff_alpha([[0.9, 0.1], [0.1, 0.9]]) == pytest.approx(1 - 0.32 / (0.64 / 3))


@pytest.mark.parametrize("ratings", [[], [[0.5, 0.6]], [[0.5, None], [None, 0.6]], [[0.3, 0.3], [0.3, 0.3]]])
def test_alpha_is_unknown_without_two_raters_or_any_difference(ratings):
    assert krippendorff_alpha(ratings) is None
