"""Inputs that broke other trainers' losses and advantages."""

from __future__ import annotations

import math

import pytest
import torch

from groundrule.algorithms.advantages import ADVANTAGES, advantages, whitened
from groundrule.algorithms.loss_settings import PolicyLossConfig
from groundrule.algorithms.policy_loss import token_losses, token_weights
from groundrule.algorithms.presets import PRESETS

SCALED = ["floored", "group_std", "population_std", "leave_one_out_std"]


@pytest.mark.parametrize("kind", ADVANTAGES)
def test_equal_rewards_give_no_advantage(kind):
    assert advantages([0.5, 0.5, 0.5, 0.5], kind=kind) == [0, 0, 0, 0]


@pytest.mark.parametrize("kind", ADVANTAGES)
def test_rewards_that_are_equal_but_for_rounding_give_next_to_none(kind):
    assert max(abs(a) for a in advantages([0.30000000000000004, 0.3, 0.3, 0.3], kind=kind)) < 1e-6


def test_one_failure_among_equals_does_not_explode():
    rewards = [0.0, *[0.95] * 7]
    assert max(abs(a) for a in advantages(rewards, kind="leave_one_out_std")) < 10


@pytest.mark.parametrize(
    ("kind", "expected"), [("population_std", [1.0, None, -1.0]), ("group_std", [0.7071, None, -0.7071])]
)
def test_a_member_without_a_score_moves_nobody(kind, expected):
    found = advantages([1.0, None, 0.0], kind=kind)
    assert found[1] is None
    assert [found[0], found[2]] == pytest.approx([expected[0], expected[2]], abs=0.01)


@pytest.mark.parametrize("kind", ADVANTAGES)
@pytest.mark.parametrize("rewards", [[0.7], [0.7, None, None]])
def test_a_single_score_gives_a_finite_zero(kind, rewards):
    assert [a for a in advantages(rewards, kind=kind) if a is not None] == [0.0]


@pytest.mark.parametrize(
    ("rewards", "place"),
    [([1.0, math.inf, 0.0], "member 1 is inf"), ([math.nan, 1.0, 0.0], "member 0 is nan")],
)
def test_a_reward_that_is_no_number_is_named(rewards, place):
    with pytest.raises(ValueError, match=place):
        advantages(rewards)


@pytest.mark.parametrize("aggregation", ["token_mean", "sequence_mean", "fixed_length"])
def test_a_step_in_which_everything_is_masked_weighs_nothing(aggregation):
    assert token_weights([0, 0], PolicyLossConfig(aggregation=aggregation)) == [0.0, 0.0]


def test_masked_sequences_do_not_enter_the_divisor():
    config = PolicyLossConfig(aggregation="token_mean")
    lengths, pushes = [4, 0], [1.0, -1.0]
    rows = [torch.zeros(n) for n in lengths]
    losses = [token_losses(r, r, a, config).sum() for r, a in zip(rows, pushes, strict=True)]
    weights = token_weights(lengths, config)
    assert sum(w * float(x) for w, x in zip(weights, losses, strict=True)) == -1.0


@pytest.mark.parametrize("loss", ["clipped", "gspo", "cispo"])
def test_a_huge_ratio_without_advantage_is_nothing_and_has_a_finite_gradient(loss):
    new = torch.zeros(1, requires_grad=True)
    value = token_losses(new, torch.tensor([-200.0]), 0.0, PolicyLossConfig(loss=loss)).sum()
    value.backward()
    assert value.item() == 0.0
    assert new.grad is not None and torch.isfinite(new.grad).all()


def test_the_loss_is_the_same_however_a_step_is_split():
    losses = [torch.full((2,), 1.0), torch.full((6,), 3.0)]
    weights = token_weights([2, 6], PolicyLossConfig(aggregation="token_mean"))
    assert sum(w * float(x.sum()) for w, x in zip(weights, losses, strict=True)) == 2.5


def test_advantages_are_of_the_group_and_not_of_the_batch():
    first, second = (advantages(r, kind="population_std") for r in ([1.0, 0.0], [11.0, 10.0]))
    assert first == second
    assert first[0] is not None and first[0] > 0


@pytest.mark.parametrize(("advantage", "bounded", "open_"), [(-1.0, 3.0, 100.0), (1.0, -1.2, -1.2)])
def test_the_second_clip_touches_negative_advantages_only(advantage, bounded, open_):
    new, old = torch.tensor([math.log(100.0)]), torch.zeros(1)
    for dual_clip, expected in ((3.0, bounded), (None, open_)):
        config = PolicyLossConfig(clip_high=0.2, dual_clip=dual_clip)
        assert token_losses(new, old, advantage, config).item() == pytest.approx(expected)


def test_whitened_advantages_have_mean_0_and_variance_1_over_tokens():
    found = whitened([1.0, -0.5, 0.2], [4, 3, 2])
    tokens = [found[0]] * 4 + [found[1]] * 3 + [found[2]] * 2
    assert sum(tokens) == pytest.approx(0.0, abs=1e-9)
    assert sum(t * t for t in tokens) / 8 == pytest.approx(1.0)
    assert whitened([1.0], [1]) == [0.0]


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_names_an_advantage_that_exists(name):
    assert PRESETS[name].advantage in ADVANTAGES
    assert PRESETS[name].about
