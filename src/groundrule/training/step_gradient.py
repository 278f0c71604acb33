"""The gradient of one step's loss, over all its sequences, and the numbers that describe it.

All sequences of the step, of whatever group, are one tree of tokens, so that every prefix that two of them share
is computed once. The tree, the reference policy's logprobs and those of the weights at the start of the step are
the same in every epoch and are found once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch

from groundrule.algorithms.loss_settings import PolicyLossConfig
from groundrule.algorithms.policy_loss import (
    importance_weights,
    kl_terms,
    token_losses,
    token_weights,
)
from groundrule.algorithms.sequences import TokenSequence
from groundrule.models.load import LanguageModel
from groundrule.models.recompute import checkpointed
from groundrule.models.tree_pass import add_gradients, all_logprobs
from groundrule.training.batch import TrainingItem, tree_of

if TYPE_CHECKING:
    from groundrule.training.lora_trainer import TrainerSettings


@dataclass
class Sums:
    """What a step adds up, token by token."""

    loss: float = 0.0
    kl: float = 0.0
    sampler_kl: float = 0.0
    clipped: int = 0
    tokens: int = 0
    ratio_error: float = 0.0
    logprob: float = 0.0
    importance: float = 0.0
    capped: int = 0

    def note(
        self, new: torch.Tensor, old: torch.Tensor, recorded: torch.Tensor, config: PolicyLossConfig
    ) -> None:
        """Count the tokens of one sequence by their logprobs now, at the clip's centre and when sampled."""
        ratio, drift = torch.exp(new - old), new - recorded
        self.tokens += new.numel()
        self.sampler_kl += float((torch.exp(drift) - drift - 1).sum())
        self.clipped += int(((ratio < 1 - config.clip_low) | (ratio > 1 + config.clip_high)).sum())
        self.ratio_error = max(self.ratio_error, float((ratio - 1).abs().max()))
        self.logprob += float(new.sum())

    def report(self, config: PolicyLossConfig) -> dict[str, float]:
        """The step's metrics; what is not finite is unknown and left out."""
        tokens = self.tokens
        numbers = {
            "train/loss": self.loss,
            "policy/kl_reference": self.kl / tokens,
            "policy/kl_sampler": self.sampler_kl / tokens,
            "policy/clip_fraction": self.clipped / tokens,
            "policy/ratio_max_error": self.ratio_error,
            "policy/logprob_mean": self.logprob / tokens,
            "train/tokens": float(tokens),
        }
        if config.importance != "none":
            numbers["policy/importance_mean"] = self.importance / tokens
            numbers["policy/importance_capped"] = self.capped / tokens
        return {name: value for name, value in numbers.items() if math.isfinite(value)}


class StepGradient:
    """The loss of a step's items as a function of the adapter, for one epoch after the other."""

    def __init__(
        self, model: LanguageModel, items: Sequence[TrainingItem], settings: TrainerSettings
    ) -> None:
        self.model = model
        self.items = items
        self.settings = settings
        self.config = settings.policy_loss
        self.tree = tree_of((i.sequence for i in items), share=settings.share_prefixes)
        self.weights = token_weights([item.sequence.trained for item in items], self.config)
        self.reference: list[torch.Tensor] | None = None
        self.proximal: dict[int, torch.Tensor] = {}
        """By item: its logprobs under the weights at the start of the step."""

    @property
    def sizes(self) -> dict[str, float]:
        """How many tokens pass through the model, and how many would if nothing were shared."""
        return {
            "train/unique_tokens": float(self.tree.unique_tokens),
            "train/all_tokens": float(self.tree.all_tokens),
        }

    def accumulate(self) -> Sums:
        """Add the gradient of the whole step's loss to the adapter's `.grad`."""
        at_once = self.settings.tokens_at_once
        if self.config.kl_coef and self.reference is None:
            with self.model.base_only():
                self.reference = all_logprobs(self.model, self.tree, tokens_at_once=at_once)
        sums = Sums()
        lean = checkpointed(self.model) if self.settings.gradient_checkpointing else nullcontext()
        with lean:
            add_gradients(self.model, self.tree, partial(self._loss, sums), tokens_at_once=at_once)
        return sums

    def _loss(self, sums: Sums, index: int, new: torch.Tensor) -> torch.Tensor:
        item, config = self.items[index], self.config
        proximal = self.proximal.setdefault(index, new.detach())
        recorded = _recorded(item.sequence, new.device) if item.has_logprobs else proximal
        old = recorded if config.importance == "none" else proximal
        weights = importance_weights(proximal, recorded, config)
        losses = weights * token_losses(new, old, item.advantage, config)
        if self.reference is not None:
            kl = kl_terms(new, self.reference[index], config.kl_estimator)
            losses = losses + config.kl_coef * kl
            sums.kl += float(kl.detach().sum())
        loss = self.weights[index] * losses.sum()
        sums.loss += float(loss.detach())
        sums.importance += float(weights.sum())
        sums.capped += int((weights >= config.importance_cap).sum())
        sums.note(new.detach(), old, recorded, config)
        return loss


def _recorded(sequence: TokenSequence, device: torch.device) -> torch.Tensor:
    """What the sampler said of the trained tokens: (tokens,)."""
    pairs = zip(sequence.logprobs, sequence.sampled, strict=True)
    return torch.tensor([logprob for logprob, is_sampled in pairs if is_sampled], device=device)
