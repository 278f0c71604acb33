"""What PPO learns from: the sampled tokens of scored trajectories, and what each of them was worth.

All numbers are found once, before the first update of a step. They are lists of one tensor a sequence, each (tokens,),
with one number for every token that the policy sampled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from groundrule.algorithms.gae import gae, kl_rewards, whiten
from groundrule.algorithms.policy_loss import kl_terms
from groundrule.algorithms.sequences import TokenSequence, histories_of
from groundrule.data.group import TrajectoryGroup
from groundrule.data.trajectory import Trajectory
from groundrule.errors import TrainingError
from groundrule.models.tree import TokenTree
from groundrule.training.batch import TIE, is_truncated, tree_of
from groundrule.training.ppo_settings import PpoSettings

LEVEL = 1e-6
"""Advantages that differ by less than this, relative to the largest, are alike: whitening would blow up rounding."""


@dataclass(frozen=True)
class ScoredTokens:
    """One trajectory: its score, and the sequences of each of its histories in the order of sampling."""

    score: float
    histories: tuple[tuple[TokenSequence, ...], ...]


@dataclass(frozen=True)
class PpoBatch:
    """Sequences of a step or of a part of it; `owners[i]` is the trajectory that sequence i belongs to."""

    sequences: tuple[TokenSequence, ...]
    owners: tuple[int, ...]
    logprobs: tuple[torch.Tensor, ...]
    """Under the policy at the start of the step: the clip's centre."""
    reference: tuple[torch.Tensor, ...]
    values: tuple[torch.Tensor, ...]
    """Of the critic at the start of the step, before each token."""
    advantages: tuple[torch.Tensor, ...]
    returns: tuple[torch.Tensor, ...]

    @property
    def tokens(self) -> int:
        """How many were sampled."""
        return sum(s.trained for s in self.sequences)

    @property
    def has_signal(self) -> bool:
        """Whether any token pulls at the policy."""
        return any(bool((row.abs() >= TIE).any()) for row in self.advantages)

    @property
    def kl(self) -> list[torch.Tensor]:
        """k1 estimates of the KL from the policy at the start of the step to the reference."""
        return [kl_terms(p, r, "k1") for p, r in zip(self.logprobs, self.reference, strict=True)]

    def tree(self, *, share: bool) -> TokenTree:
        """All sequences, their sampled tokens scored."""
        return tree_of(self.sequences, share=share)

    def only(self, trajectories: Sequence[int]) -> PpoBatch:
        """The part that belongs to these."""
        chosen = [i for i, owner in enumerate(self.owners) if owner in set(trajectories)]
        parts = {name: tuple(row[i] for i in chosen) for name, row in vars(self).items()}
        return replace(self, **parts)


def scored_tokens(groups: Sequence[TrajectoryGroup], *, truncated_penalty: float = 0.0) -> list[ScoredTokens]:
    """Every scored member of these groups; those without a score are left out.

    The penalty is taken off the score of an answer that was cut at its length limit.

    Raises `TrainingError` for a score that is no finite number and for a member without sampled tokens.
    """
    return [
        _tokens_of(
            trajectory,
            f"group {g}, trajectory {t}",
            penalty=truncated_penalty if truncated_penalty and is_truncated(trajectory) else 0.0,
        )
        for g, group in enumerate(groups)
        for t, trajectory in enumerate(group.trajectories)
        if trajectory.unscored is None
    ]


def estimated(
    trajectories: Sequence[ScoredTokens],
    logprobs: Sequence[torch.Tensor],
    reference: Sequence[torch.Tensor],
    values: Sequence[torch.Tensor],
    *,
    settings: PpoSettings,
    kl_coef: float,
) -> PpoBatch:
    """Rewards, advantages and returns from the score, the KL and the critic of every sequence.

    A token's reward is -kl_coef (log p - log p_ref), and that of the last token of a history has the score added
    (Ziegler et al. 2019, eq. 2; Stiennon et al. 2020). Advantages are those of GAE along a whole history: what stands
    between two turns, such as a tool's result, is passed over.
    """
    sequences = [s for t in trajectories for history in t.histories for s in history]
    owners = [i for i, t in enumerate(trajectories) for history in t.histories for _ in history]
    _all_finite(logprobs, reference, values, owners)
    advantages: list[torch.Tensor] = []
    returns: list[torch.Tensor] = []
    for trajectory in trajectories:
        for history in trajectory.histories:
            at = slice(len(returns), len(returns) + len(history))
            found = _along(
                trajectory.score, logprobs[at], reference[at], values[at], settings=settings, kl_coef=kl_coef
            )
            advantages += found[0]
            returns += found[1]
    if settings.whiten:
        advantages = _whitened(advantages)
    rows = (logprobs, reference, values, advantages, returns)
    return PpoBatch(tuple(sequences), tuple(owners), *map(tuple, rows))


def _tokens_of(trajectory: Trajectory, place: str, *, penalty: float) -> ScoredTokens:
    if not math.isfinite(trajectory.reward):
        raise TrainingError(
            f"{place} has the reward {trajectory.reward}; a reward is a finite number. Mend the scorer, or set "
            "`unscored` to the reason why there is none"
        )
    histories = tuple(tuple(sequences) for sequences in histories_of(trajectory) if sequences)
    if not histories:
        raise TrainingError(
            f"{place} has a reward but no sampled tokens with logprobs, so it cannot be trained on: ask the model "
            "through model.openai_client() and keep the returned Choice objects in messages_and_choices"
        )
    return ScoredTokens(trajectory.reward - penalty, histories)


def _along(
    score: float,
    logprobs: Sequence[torch.Tensor],
    reference: Sequence[torch.Tensor],
    values: Sequence[torch.Tensor],
    *,
    settings: PpoSettings,
    kl_coef: float,
) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    """Advantages and returns of the sequences of one history."""
    lengths = [len(row) for row in values]
    kl = kl_terms(torch.cat(list(logprobs)), torch.cat(list(reference)), "k1")
    # Tokens of others carry no reward and no value, so leaving them out is what GAE's mask does.
    rewards = kl_rewards(kl, score, torch.ones_like(kl, dtype=torch.bool), coefficient=kl_coef)
    both = gae(rewards, torch.cat(list(values)), gamma=settings.gamma, lam=settings.lam)
    advantages, returns = (list(torch.split(row, lengths)) for row in both)
    return advantages, returns


def _whitened(advantages: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Over all tokens together. One token, or advantages that are all alike, say nothing and become 0."""
    together = torch.cat(list(advantages))
    spread, largest = float(together.max() - together.min()), float(together.abs().max())
    if spread <= LEVEL * max(1.0, largest):
        return [torch.zeros_like(row) for row in advantages]
    scaled = whiten(together, torch.ones_like(together, dtype=torch.bool))
    return list(torch.split(scaled, [len(row) for row in advantages]))


def _all_finite(
    logprobs: Sequence[torch.Tensor],
    reference: Sequence[torch.Tensor],
    values: Sequence[torch.Tensor],
    owners: Sequence[int],
) -> None:
    named = {"policy's logprobs": logprobs, "reference's logprobs": reference, "critic's values": values}
    for name, rows in named.items():
        wrong = next((i for i, row in enumerate(rows) if not bool(torch.isfinite(row).all())), None)
        if wrong is not None:
            raise TrainingError(
                f"the {name} of scored trajectory {owners[wrong]} are not all finite; go back to an earlier "
                "checkpoint and lower the learning rate"
            )
