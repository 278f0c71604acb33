"""What a step of PPO says of its groups, of policy, reference and critic before it moves them, and of its updates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

import torch

from groundrule.algorithms.policy_loss import kl_terms
from groundrule.data.group import TrajectoryGroup
from groundrule.training.ppo_batch import PpoBatch
from groundrule.training.ppo_gradient import Sums


def group_metrics(groups: Sequence[TrajectoryGroup]) -> dict[str, float]:
    """How many trajectories there are, and how many of them teach."""
    every = [trajectory for group in groups for trajectory in group.trajectories]
    return {
        "ppo/groups": float(len(groups)),
        "ppo/trajectories": float(len(every)),
        "ppo/unscored": float(sum(t.unscored is not None for t in every)),
        "ppo/exceptions": float(sum(len(group.exceptions) for group in groups)),
    }


def batch_metrics(batch: PpoBatch, kl_coef: float, scores: Sequence[float]) -> dict[str, float]:
    """Numbers at the start of the step; what is unknown is left out.

    kl_answer and kl_token are k1 estimates of the KL to the reference, so that single ones may be below 0. objective
    is what PPO raises: score - kl_coef x kl_answer. entropy is the mean -log p of the sampled tokens, its estimate
    without bias at the temperature of sampling.
    """
    kl, logprobs = torch.cat(batch.kl), torch.cat(batch.logprobs)
    returns, values = torch.cat(batch.returns), torch.cat(batch.values)
    kl_answer = float(kl.sum()) / len(scores)
    numbers = {
        "reward/mean": fmean(scores),
        "reward/min": min(scores),
        "reward/max": max(scores),
        "ppo/kl_answer": kl_answer,
        "ppo/kl_token": float(kl.mean()),
        "ppo/objective": fmean(scores) - kl_coef * kl_answer,
        "ppo/entropy": -float(logprobs.mean()),
        "ppo/kl_sampler": _kl_sampler(batch),
        "ppo/return_mean": float(returns.mean()),
        "ppo/tokens": float(batch.tokens),
        "critic/value_mean": float(values.mean()),
        "critic/explained_variance": explained_variance(values, returns),
    }
    return {name: value for name, value in numbers.items() if math.isfinite(value)}


@dataclass
class Progress:
    """How far a step has come. Losses, clipped shares and the KL are over the tokens of all its minibatches."""

    policy: Sums = field(default_factory=Sums)
    critic: Sums = field(default_factory=Sums)
    norm: float = math.nan
    """Of the last gradient, before it was clipped."""
    critic_norm: float = math.nan
    updates: int = 0
    is_stopped: bool = False
    is_updated: bool = False

    def metrics(self) -> dict[str, float]:
        """What is unknown is left out: of the policy everything in a step that does not train it."""
        numbers = {
            "ppo/loss": self.policy.mean("loss"),
            "ppo/clip_fraction": self.policy.mean("clipped"),
            "ppo/kl_step": self.policy.mean("kl"),
            "ppo/grad_norm": self.norm,
            "critic/loss": self.critic.mean("loss"),
            "critic/clip_fraction": self.critic.mean("clipped"),
            "critic/grad_norm": self.critic_norm,
            "ppo/updates": float(self.updates),
            "ppo/stopped": float(self.is_stopped),
            "ppo/updated": float(self.is_updated),
        }
        return {name: value for name, value in numbers.items() if math.isfinite(value)}


def explained_variance(values: torch.Tensor, returns: torch.Tensor) -> float:
    """1 - Var(returns - values) / Var(returns): 1 for a perfect critic, 0 for a constant one; NaN for level returns."""
    spread = float(returns.var(unbiased=False))
    if spread <= 1e-12:
        return math.nan
    return 1.0 - float((returns - values).var(unbiased=False)) / spread


def _kl_sampler(batch: PpoBatch) -> float:
    """k3 a token between what the sampler recorded and the policy at the start of the step: 0 but for rounding."""
    total = 0.0
    for sequence, logprobs in zip(batch.sequences, batch.logprobs, strict=True):
        recorded = [p for p, s in zip(sequence.logprobs, sequence.sampled, strict=True) if s]
        total += float(kl_terms(logprobs.new_tensor(recorded), logprobs, "k3").sum())
    return total / batch.tokens
