"""Losses on preferences, against golden numbers, identities and finite differences."""

from __future__ import annotations

import math

import pytest
import torch

from groundrule.algorithms.preference_loss import bradley_terry_loss, dpo_loss, plackett_luce_loss

CHOSEN, REJECTED = torch.tensor([1.2, 0.3, -0.5]), torch.tensor([0.2, 0.6, -1.5])


@pytest.mark.parametrize(
    ("settings", "expected"), [({}, 0.493626), ({"centring": 0.01}, 0.516193), ({"margin": 0.1}, 0.531774)]
)
def test_golden_bradley_terry(settings, expected):
    assert bradley_terry_loss(CHOSEN, REJECTED, **settings).item() == pytest.approx(expected, abs=1e-6)


def test_an_even_label_pulls_both_together():
    gap = torch.tensor([2.0], requires_grad=True)
    bradley_terry_loss(gap, torch.zeros(1), certainty=0.5).backward()
    assert gap.grad is not None and gap.grad.item() > 0


def test_a_ranking_of_two_is_bradley_terry():
    scores = torch.tensor([0.3, 1.1])
    pair = bradley_terry_loss(scores[1:], scores[:1])
    assert plackett_luce_loss(scores, [[1], [0]]).item() == pytest.approx(pair.item())


def test_a_ranking_of_three_is_two_choices():
    scores = torch.tensor([0.0, math.log(2.0), math.log(3.0)])
    # 3 of 6, then 2 of 3.
    expected = -(math.log(3 / 6) + math.log(2 / 3)) / 2
    assert plackett_luce_loss(scores, [[2], [1], [0]]).item() == pytest.approx(expected)


def test_members_of_one_tier_are_not_compared():
    scores = torch.tensor([5.0, -5.0, 0.0], requires_grad=True)
    plackett_luce_loss(scores, [[2], [0, 1]]).backward()
    swapped = torch.tensor([-5.0, 5.0, 0.0])
    first = plackett_luce_loss(scores.detach(), [[2], [0, 1]])
    assert first.item() == pytest.approx(plackett_luce_loss(swapped, [[2], [0, 1]]).item())


def test_a_ranking_without_an_order_teaches_nothing():
    scores = torch.tensor([1.0, 2.0], requires_grad=True)
    loss = plackett_luce_loss(scores, [[0, 1]])
    loss.backward()
    assert loss.item() == 0.0
    assert scores.grad is not None and scores.grad.tolist() == [0.0, 0.0]


def test_dpo_is_bradley_terry_on_how_far_the_policy_moved():
    zero = torch.zeros(3)
    found = dpo_loss(CHOSEN, REJECTED, zero, zero, beta=1.0)
    assert found.item() == pytest.approx(0.493626, abs=1e-6)
    moved_alike = dpo_loss(CHOSEN, CHOSEN, REJECTED, REJECTED)
    assert moved_alike.item() == pytest.approx(math.log(2.0))


def test_a_smoothed_label_counts_the_pair_the_other_way_round_too():
    zero = torch.zeros(1)
    up, down = (dpo_loss(torch.tensor([x]), zero, zero, zero, beta=1.0).item() for x in (1.0, -1.0))
    smoothed = dpo_loss(torch.tensor([1.0]), zero, zero, zero, beta=1.0, certainty=0.9).item()
    assert smoothed == pytest.approx(0.9 * up + 0.1 * down)


@pytest.mark.parametrize(
    "loss",
    [
        lambda a, b: bradley_terry_loss(a, b, margin=0.1, centring=0.01, certainty=0.8),
        lambda a, b: dpo_loss(a, b, CHOSEN.double() - 1, REJECTED.double() + 1, certainty=0.8),
        lambda a, b: plackett_luce_loss(torch.cat([a, b]), [[0, 3], [1], [2, 4, 5]]),
    ],
    ids=["bradley-terry", "dpo", "plackett-luce"],
)
def test_gradients_are_those_of_finite_differences(loss):
    points = [t.double().requires_grad_() for t in (CHOSEN, REJECTED)]
    assert torch.autograd.gradcheck(loss, points)
