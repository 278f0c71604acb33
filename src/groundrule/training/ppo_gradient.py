"""The gradients of one minibatch of PPO, for the policy and for its critic.

Both losses are means over the minibatch's sampled tokens. How the tree is shared and cut does not change them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from groundrule.algorithms.gae import value_loss
from groundrule.algorithms.loss_settings import PolicyLossConfig
from groundrule.algorithms.policy_loss import kl_terms, token_losses
from groundrule.models.critic import Critic
from groundrule.models.load import LanguageModel
from groundrule.models.tree_pass import add_gradients
from groundrule.training.ppo_batch import PpoBatch
from groundrule.training.ppo_settings import PpoSettings


@dataclass(frozen=True)
class Sums:
    """What minibatches add up, token by token, before they move the weights."""

    loss: float = 0.0
    tokens: int = 0
    clipped: int = 0
    """Tokens at which the clipped term is the one that counts, so that they do not pull."""
    kl: float = 0.0
    """To the policy at the start of the step; of the policy only."""

    def __add__(self, other: Sums) -> Sums:
        return Sums(*(a + b for a, b in zip(vars(self).values(), vars(other).values(), strict=True)))

    def mean(self, name: str) -> float:
        """Of one of these numbers, over the tokens; NaN without any."""
        return float(getattr(self, name)) / self.tokens if self.tokens else math.nan


def add_policy_gradients(model: LanguageModel, batch: PpoBatch, settings: PpoSettings) -> Sums:
    """Add the gradient of the clipped loss (Schulman et al. 2017, eq. 7) to the policy's `.grad`.

    There is no entropy bonus. The KL to the reference is in the rewards, not in the loss.
    """
    config = PolicyLossConfig(clip_low=settings.clip, clip_high=settings.clip)
    sums: list[Sums] = []

    def loss_of(i: int, new: torch.Tensor) -> torch.Tensor:
        old, advantages = batch.logprobs[i], batch.advantages[i]
        losses = token_losses(new, old, advantages, config)
        seen = new.detach()
        unclipped = -advantages * torch.exp(seen - old)
        # The policy at the start sampled the tokens, so this is the KL from it to the policy of now.
        kl = float(kl_terms(old, seen, "k3").sum())
        sums.append(Sums(float(losses.detach().sum()), len(new), int((losses > unclipped).sum()), kl))
        return losses.sum() / batch.tokens

    tree = batch.tree(share=settings.share_prefixes)
    add_gradients(model, tree, loss_of, tokens_at_once=settings.tokens_at_once)
    return sum(sums, Sums())


def add_critic_gradients(critic: Critic, batch: PpoBatch, settings: PpoSettings) -> Sums:
    """Add the gradient of the clipped squared error (`algorithms.gae.value_loss`) to the critic's `.grad`.

    No factor weighs it against the policy's loss, as nothing that is trained belongs to both.
    """
    sums: list[Sums] = []

    def loss_of(i: int, values: torch.Tensor) -> torch.Tensor:
        old, returns = batch.values[i].to(values.device), batch.returns[i].to(values.device)
        everywhere = torch.ones_like(returns, dtype=torch.bool)
        loss = value_loss(values, old, returns, everywhere, clip=settings.value_clip) * len(values)
        clipped = 0
        if settings.value_clip is not None:
            seen = values.detach()
            held = old + (seen - old).clamp(-settings.value_clip, settings.value_clip)
            clipped = int(((held - returns).square() > (seen - returns).square()).sum())
        sums.append(Sums(float(loss.detach()), len(values), clipped))
        return loss / batch.tokens

    tree = batch.tree(share=settings.share_prefixes)
    with critic.switched_on():
        add_gradients(critic.model, tree, loss_of, tokens_at_once=settings.tokens_at_once, read=critic.read)
    return sum(sums, Sums())
