"""PPO's two gradients: those of the plain losses, of finite differences, and none where nothing is to be learned."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from groundrule.training.ppo import PpoTrainer
from groundrule.training.ppo_batch import PpoBatch
from groundrule.training.ppo_gradient import Sums, add_critic_gradients, add_policy_gradients
from ppo import plain_logprobs, plain_values, shake, trainer, written
from tiny import close


def away(made: PpoTrainer) -> PpoBatch:
    """A step's numbers, with policy and critic moved on since, so that some ratios and values are clipped."""
    batch = made.estimate(written())
    shake(made.parameters, 7, by=0.02)
    shake(made.critic_parameters, 8, by=0.02)
    return batch


def policy_loss(made: PpoTrainer, batch: PpoBatch) -> torch.Tensor:
    """Sequence by sequence: the mean of max(-A r, -A clip(r, 0.8, 1.2)) over all tokens."""
    losses = []
    for i, sequence in enumerate(batch.sequences):
        ratio = torch.exp(plain_logprobs(made.model.network, sequence) - batch.logprobs[i])
        advantages = batch.advantages[i]
        losses.append(torch.maximum(-advantages * ratio, -advantages * ratio.clamp(0.8, 1.2)))
    return torch.cat(losses).mean()


def critic_loss(made: PpoTrainer, batch: PpoBatch) -> torch.Tensor:
    """Sequence by sequence: half the mean of max((v - R)^2, (v clipped to +-0.2 around the old one - R)^2)."""
    losses = []
    for i, sequence in enumerate(batch.sequences):
        values, old, returns = plain_values(made.critic, sequence), batch.values[i], batch.returns[i]
        held = torch.minimum(torch.maximum(values, old - 0.2), old + 0.2)
        losses.append(torch.maximum((values - returns) ** 2, (held - returns) ** 2))
    return 0.5 * torch.cat(losses).mean()


def gradients(parameters: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: p.grad.clone() for name, p in parameters.items() if p.grad is not None}


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("tokens_at_once", [4, 16, 4096])
def test_the_policys_gradient_is_the_plain_one_however_the_tree_is_cut(
    tokens_at_once: int, share: bool
) -> None:
    made = trainer(moved=True, tokens_at_once=tokens_at_once, share_prefixes=share)
    batch = away(made)

    sums = add_policy_gradients(made.model, batch, made.settings)
    found = gradients({**made.parameters, **made.critic_parameters})
    made.optimizer.zero_grad()
    loss = policy_loss(made, batch)
    loss.backward()  # type: ignore[no-untyped-call]

    wanted = gradients({**made.parameters})
    assert found.keys() == wanted.keys() == made.parameters.keys()
    assert max(close(found[name], wanted[name]) for name in wanted) < 1e-4
    assert sums.mean("loss") == pytest.approx(loss.item(), abs=1e-5)
    assert 0 < sums.clipped < batch.tokens


@pytest.mark.parametrize("separate", [True, False])
@pytest.mark.parametrize("tokens_at_once", [4, 16, 4096])
def test_the_critics_gradient_is_the_plain_one_however_the_tree_is_cut(
    tokens_at_once: int, separate: bool
) -> None:
    made = trainer(moved=True, separate=separate, tokens_at_once=tokens_at_once)
    batch = away(made)

    sums = add_critic_gradients(made.critic, batch, made.settings)
    found = gradients({**made.parameters, **made.critic_parameters})
    made.critic_optimizer.zero_grad()
    loss = critic_loss(made, batch)
    with made.critic.switched_on():
        loss.backward()  # type: ignore[no-untyped-call]

    wanted = gradients(made.critic_parameters)
    assert found.keys() == wanted.keys() == made.critic_parameters.keys()
    assert max(close(found[name], wanted[name]) for name in wanted) < 1e-4
    assert sums.mean("loss") == pytest.approx(loss.item(), abs=1e-5)
    assert 0 < sums.clipped < batch.tokens


@pytest.mark.parametrize("part", ["policy", "critic"])
def test_the_gradients_are_those_of_finite_differences(part: str) -> None:
    made = trainer(moved=True)
    batch, noise = away(made), torch.Generator().manual_seed(1)
    weights = dict(made.parameters if part == "policy" else made.critic_parameters)

    def take() -> Sums:
        if part == "policy":
            return add_policy_gradients(made.model, batch, made.settings)
        return add_critic_gradients(made.critic, batch, made.settings)

    take()
    slopes = gradients(weights)
    ways = {name: torch.randn(p.shape, generator=noise) for name, p in weights.items()}
    along = sum(float((slopes[name] * ways[name]).sum()) for name in slopes)
    losses = []
    for sign in (1, -2):
        for name, parameter in weights.items():
            parameter.data += sign * 1e-3 * ways[name]
        losses.append(take().mean("loss"))

    assert (losses[0] - losses[1]) / 2e-3 == pytest.approx(along, rel=0.01)


def test_before_the_first_update_every_ratio_is_one() -> None:
    made = trainer(moved=True)
    batch = made.estimate(written())

    sums = add_policy_gradients(made.model, batch, made.settings)

    advantages = torch.cat(batch.advantages)
    assert sums.mean("kl") == pytest.approx(0.0, abs=1e-9)
    assert sums.mean("loss") == pytest.approx(-float(advantages.mean()), abs=1e-5)
    assert sums.clipped == 0


def test_without_an_advantage_the_gradient_is_zero_to_the_bit() -> None:
    made = trainer(moved=True)
    batch = away(made)
    level = replace(batch, advantages=tuple(torch.zeros_like(a) for a in batch.advantages))

    add_policy_gradients(made.model, level, made.settings)

    assert all(not grad.any() for grad in gradients({**made.parameters}).values())


def test_minibatches_of_whole_trajectories_add_up_to_the_step() -> None:
    made = trainer(moved=True)
    batch = away(made)

    whole = add_critic_gradients(made.critic, batch, made.settings)
    parts = [add_critic_gradients(made.critic, batch.only(p), made.settings) for p in ([0, 1], [2])]

    assert parts[0].tokens + parts[1].tokens == whole.tokens == 13
    assert (parts[0] + parts[1]).mean("loss") == pytest.approx(whole.mean("loss"), abs=1e-6)
