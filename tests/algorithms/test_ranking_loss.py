"""The loss of one ranking: what margins, ties, certainty and centring do to it."""

from __future__ import annotations

import math

import pytest
import torch
from pydantic import ValidationError

from groundrule.algorithms.ranking_loss import Comparison, RankingLossConfig, ranking_loss, share_right

VALUES = torch.tensor([1.2, 0.2, -0.5])
TIERS = [[0], [1], [2]]
PAIRS = [Comparison(0, 1, 0.5), Comparison(0, 2, None), Comparison(1, 2, 2.0)]
PLAIN = {"centring": 0.0}


def loss(tiers=TIERS, pairs=PAIRS, certainty=1.0, values=VALUES, **settings):
    config = RankingLossConfig(**{**PLAIN, **settings})
    return ranking_loss(values, tiers, pairs, certainty=certainty, config=config).item()


def minus_log_sigmoid(x):
    return math.log1p(math.exp(-x))


def test_bradley_terry_is_the_mean_over_all_pairs():
    expected = (minus_log_sigmoid(1.0) + minus_log_sigmoid(1.7) + minus_log_sigmoid(0.7)) / 3
    assert loss() == pytest.approx(expected)
    assert loss() == pytest.approx(0.294745, abs=1e-6)


def test_a_margin_asks_for_so_much_more_and_none_asks_for_nothing():
    expected = (minus_log_sigmoid(0.8) + minus_log_sigmoid(1.7) + minus_log_sigmoid(-0.1)) / 3
    assert loss(margin_weight=0.4) == pytest.approx(expected)


def test_certainty_is_a_soft_label():
    [pair] = [Comparison(0, 1)]
    soft = loss(tiers=[[0], [1]], pairs=[pair], certainty=0.8)
    assert soft == pytest.approx(0.8 * minus_log_sigmoid(1.0) + 0.2 * minus_log_sigmoid(-1.0))


def test_a_soft_label_is_best_met_by_its_own_odds():
    pair = [Comparison(0, 1)]
    at = [loss([[0], [1]], pair, 0.8, torch.tensor([x, 0.0])) for x in (1.2, math.log(4), 1.6)]
    assert min(at) == at[1]


@pytest.mark.parametrize("certainty", [1.0, 0.7])
def test_for_two_answers_plackett_luce_is_bradley_terry(certainty):
    both = [
        loss([[1], [0]], [Comparison(1, 0)], certainty, kind=kind, centring=0.01)
        for kind in ("bradley-terry", "plackett-luce")
    ]
    assert both[0] == pytest.approx(both[1])


def test_plackett_luce_is_the_mean_over_choices():
    weights = [math.exp(v) for v in VALUES.tolist()]
    first, second = weights[0] / sum(weights), weights[1] / (weights[1] + weights[2])
    assert loss(kind="plackett-luce") == pytest.approx(-(math.log(first) + math.log(second)) / 2)


def test_centring_adds_the_mean_square_of_the_sums():
    expected = (1.4**2 + 0.7**2 + 0.3**2) / 3
    assert loss(centring=0.1) - loss() == pytest.approx(0.1 * expected, abs=1e-6)
    assert loss(centring=0.1, kind="plackett-luce") - loss(kind="plackett-luce") == pytest.approx(
        0.1 * expected, abs=1e-6
    )


def test_tied_answers_are_not_compared_with_each_other():
    pairs = [Comparison(0, 1), Comparison(0, 2)]
    swapped = torch.tensor([1.2, -0.5, 0.2])
    for kind in ("bradley-terry", "plackett-luce"):
        assert loss([[0], [1, 2]], pairs, kind=kind) == pytest.approx(
            loss([[0], [1, 2]], pairs, values=swapped, kind=kind)
        )


def test_margins_are_refused_where_no_pairs_are_compared():
    with pytest.raises(ValidationError, match=r"margin_weight is 0\.5, but plackett-luce compares no pairs"):
        RankingLossConfig(kind="plackett-luce", margin_weight=0.5)


def test_equal_values_are_half_right():
    pairs = [Comparison(0, 1), Comparison(0, 2), Comparison(1, 2), Comparison(2, 3)]
    assert share_right([1.0, 1.0, 0.0, 2.0], pairs) == 2.5 / 4
