"""What is said of a reward model on ranked answers."""

from __future__ import annotations

import math

import pytest

from groundrule.algorithms.ranking_loss import Comparison
from groundrule.algorithms.reward_evaluation import (
    ValuedRanking,
    accuracy_by_margin,
    calibration,
    evaluate_values,
    length_correlation,
    longer_is_better,
    pair_accuracy,
)


def valued(*values, lengths=None, prompt="p", margins=(1.0, 1.0, 2.0)):
    """Three answers, best first."""
    pairs = [(0, 1), (1, 2), (0, 2)]
    comparisons = tuple(Comparison(*p, m) for p, m in zip(pairs, margins, strict=True))
    return ValuedRanking(prompt, values, lengths or (1, 2, 3), comparisons)


def test_accuracy_is_the_share_of_pairs_in_order_and_level_ones_count_half():
    assert pair_accuracy([valued(3.0, 2.0, 1.0), valued(1.0, 1.0, 2.0)]).value == pytest.approx(3.5 / 6)


def test_the_interval_is_over_prompts():
    rankings = [valued(3.0, 2.0, 1.0, prompt=str(i)) for i in range(6)]
    found = pair_accuracy([*rankings, valued(1.0, 2.0, 3.0, prompt="7")])
    assert found.value == pytest.approx(6 / 7)
    assert found.low is not None and found.low < 6 / 7 <= found.high


def test_few_prompts_have_no_interval():
    assert pair_accuracy([valued(3.0, 2.0, 1.0)] * 9).low is None


def test_pairs_are_told_apart_by_their_margin():
    found = accuracy_by_margin(
        [valued(1.0, 2.0, 0.0), valued(3.0, 2.0, 1.0, margins=(0.5, 4.0, 4.5))], bins=2
    )
    assert [(b.low, b.high, b.pairs) for b in found] == [(0.5, 2.0, 3), (2.0, 4.5, 3)]
    # Margins 1 (wrong), 1 (right) and 0.5 (right); then 2, 4 and 4.5, all right.
    assert [b.accuracy.value for b in found] == pytest.approx([2 / 3, 1.0])


def test_equal_margins_are_one_bin_and_pairs_without_one_are_in_none():
    found = accuracy_by_margin([valued(3.0, 2.0, 1.0, margins=(1.0, 1.0, None))])
    assert [(b.low, b.high, b.pairs) for b in found] == [(1.0, 1.0, 2)]
    assert accuracy_by_margin([valued(3.0, 2.0, 1.0, margins=(None, None, None))]) == []


def test_a_model_that_is_right_as_often_as_it_says_is_calibrated():
    at = math.log(3)  # sigmoid: 0.75
    assert calibration([at, at, at, -at]).error == pytest.approx(0.0)


def test_the_calibration_error_is_the_mean_distance_of_accuracy_and_confidence():
    at, sure = math.log(3), math.log(99)
    found = calibration([at, -at, sure, sure])
    assert [(b.pairs, round(b.confidence, 2), b.accuracy) for b in found.bins] == [
        (2, 0.75, 0.5),
        (2, 0.99, 1.0),
    ]
    assert found.error == pytest.approx((0.25 + 0.01) / 2)


def test_level_values_have_the_confidence_of_a_coin():
    assert calibration([0.0, 0.0]).error == 0.0


def test_a_certain_model_is_in_the_last_bin():
    [found] = calibration([1000.0]).bins
    assert (found.high, found.confidence) == (1.0, 1.0)


def test_values_that_are_lengths_correlate_within_prompts_only():
    # Longer is better inside each ranking, whatever the level of its prompt.
    found = length_correlation(
        [valued(3.0, 2.0, 1.0, lengths=(30, 20, 10)), valued(-5.0, -6.0, -7.0, lengths=(60, 50, 40))]
    )
    assert found.value == pytest.approx(1.0)


def test_a_difference_between_prompts_is_no_length_bias():
    assert length_correlation([valued(1.0, 1.0, 1.0), valued(9.0, 9.0, 9.0, lengths=(7, 8, 9))]).value is None


def test_the_rule_that_longer_is_better_is_measured_on_the_same_pairs():
    found = longer_is_better([valued(0.0, 0.0, 0.0, lengths=(5, 9, 5))])
    # Shorter than the second, which is longer than the third, which is as long as the first.
    assert found.value == pytest.approx((0 + 1 + 0.5) / 3)


def test_everything_is_said_at_once_and_can_be_written():
    found = evaluate_values([valued(3.0, 2.0, 1.0), valued(1.0, 2.0, 3.0, prompt="q")])
    assert (found.rankings, found.prompts, found.pairs) == (2, 2, 6)
    assert found.to_json()["accuracy"] == {"value": 0.5, "low": None, "high": None}


def test_rankings_without_an_order_cannot_be_measured():
    with pytest.raises(ValueError, match="none puts one answer above another"):
        evaluate_values([ValuedRanking("p", (1.0,), (1,), ())])
