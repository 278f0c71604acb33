"""Advantages from a critic, against golden numbers and against finite differences."""

from __future__ import annotations

import pytest
import torch

from groundrule.algorithms.gae import adapted_kl_coefficient, gae, kl_rewards, value_loss, whiten

REWARDS = [[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]
VALUES = [[0.1, 0.2, 0.3, 0.4], [0.0, -0.1, -0.2]]
MOVED = [[0.3, -0.3, 0.0, 0.1], [0.1, 0.25, -0.4]]
RETURNS = [[0.89968, 0.9365, 0.97, 1.0], [-0.917, -0.96, -1.0]]


def flat(rows: list[list[float]]) -> torch.Tensor:
    return torch.tensor([x for row in rows for x in row])


def both() -> list[tuple[torch.Tensor, torch.Tensor]]:
    return [gae(torch.tensor(r), torch.tensor(v)) for r, v in zip(REWARDS, VALUES, strict=True)]


def test_golden_returns():
    for (_, returns), expected in zip(both(), RETURNS, strict=True):
        assert returns.tolist() == pytest.approx(expected, abs=1e-5)


def test_golden_whitened_advantages():
    advantages = torch.cat([a for a, _ in both()])
    whitened = whiten(advantages, torch.ones(7, dtype=torch.bool))
    expected = [0.91625, 0.84077, 0.76133, 0.67770, -1.13464, -1.06655, -0.99486]
    assert whitened.tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("clip", "expected"), [(0.2, 0.339945), (0.5, 0.317807)])
def test_golden_value_loss(clip, expected):
    old, moved = flat(VALUES), flat(MOVED)
    returns = torch.cat([r for _, r in both()])
    mask = torch.ones(7, dtype=torch.bool)
    assert value_loss(old + moved, old, returns, mask, clip=clip).item() == pytest.approx(expected, abs=1e-6)


def test_a_tool_result_between_two_turns_changes_nothing():
    plain, plain_returns = gae(torch.tensor(REWARDS[0]), torch.tensor(VALUES[0]))
    mask = torch.tensor([True, True, False, False, True, True])
    rewards = torch.tensor([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    values = torch.tensor([0.1, 0.2, 7.0, -7.0, 0.3, 0.4])
    advantages, returns = gae(rewards, values, action_mask=mask)
    assert advantages[mask].tolist() == pytest.approx(plain.tolist())
    assert returns[mask].tolist() == pytest.approx(plain_returns.tolist())
    assert advantages[~mask].tolist() == returns[~mask].tolist() == [0.0, 0.0]


def test_a_reward_on_a_token_of_a_tool_is_refused():
    with pytest.raises(ValueError, match="token 1 stands on a token that the policy did not write"):
        gae(torch.tensor([0.0, 1.0]), torch.zeros(2), action_mask=torch.tensor([True, False]))


def test_one_token_cannot_be_whitened():
    with pytest.raises(ValueError, match="1 tokens cannot be whitened"):
        whiten(torch.ones(3), torch.tensor([True, False, False]))


def test_whitening_looks_at_the_mask_only():
    mask = torch.tensor([True, True, False])
    found = whiten(torch.tensor([1.0, 3.0, 1e6]), mask)
    assert found.tolist() == pytest.approx([-0.70711, 0.70711, 0.0], abs=1e-5)


def test_the_gradient_of_the_value_loss_is_that_of_finite_differences():
    old = flat(VALUES).double()
    returns = torch.cat([r for _, r in both()]).double()
    mask = torch.tensor([True, True, False, True, True, True, True])
    point = (old + flat(MOVED)).double().requires_grad_()
    assert torch.autograd.gradcheck(lambda v: value_loss(v, old, returns, mask), (point,))


def test_the_score_stands_on_the_last_token_of_the_policy_and_kl_on_all():
    mask = torch.tensor([True, False, True, False])
    rewards = kl_rewards(torch.tensor([0.5, 9.0, -0.2, 9.0]), 2.0, mask, coefficient=0.1)
    assert rewards.tolist() == pytest.approx([-0.05, 0.0, 2.02, 0.0])


@pytest.mark.parametrize(("kl", "expected"), [(6.0, 0.1), (12.0, 0.102), (6.3, 0.1005), (0.0, 0.098)])
def test_the_kl_coefficient_moves_a_little_towards_its_target(kl, expected):
    assert adapted_kl_coefficient(0.1, kl, target=6.0, answers=1000) == pytest.approx(expected)
