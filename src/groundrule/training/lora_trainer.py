"""GRPO on LoRA weights: scored groups in, one optimizer step out.

Each distinct prompt is computed once, whatever the number of its answers; only answer positions
reach the output layer. Prompt keys and values become leaves: the answers' gradients are gathered
there piece by piece and sent back through the prompt once, so memory is bounded by
`answers_at_once` while the gradient is that of the whole step.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from pydantic import BaseModel, ConfigDict, Field, field_validator

from groundrule.algorithms.advantages import ADVANTAGES
from groundrule.algorithms.policy_loss import PolicyLossConfig, kl_terms, token_losses, token_weights
from groundrule.data.group import TrajectoryGroup
from groundrule.models.load import LanguageModel
from groundrule.models.logprobs import answer_logprobs, read_prompt
from groundrule.models.lora import LoraSettings, adapter_parameters, add_adapter
from groundrule.models.prefix import Prefix
from groundrule.training.batch import TrainingItem, plan_step

logger = logging.getLogger(__name__)


class TrainerSettings(BaseModel):
    """How scored groups become a step."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    learning_rate: float = Field(default=1e-4, gt=0)
    advantage: str = "floored"
    """A name from `algorithms.advantages.ADVANTAGES`."""
    tie_band: float = Field(default=0.0, ge=0)
    """Rewards closer than so many standard errors of the judge are tied; see `algorithms.advantages.tie_band`."""
    policy_loss: PolicyLossConfig = PolicyLossConfig()
    epochs: int = Field(default=1, ge=1)
    """Optimizer steps on the same groups."""
    max_grad_norm: float = 1.0
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.99)
    answers_at_once: int = Field(default=8, ge=1)
    lora: LoraSettings = LoraSettings()
    allow_training_without_logprobs: bool = False

    @field_validator("advantage")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in ADVANTAGES:
            raise ValueError(f"{name!r} is not an advantage; choose one of {', '.join(ADVANTAGES)}")
        return name


@dataclass
class _Sums:
    """What a step adds up, token by token."""

    loss: float = 0.0
    kl: float = 0.0
    sampler_kl: float = 0.0
    clipped: int = 0
    tokens: int = 0
    ratio_error: float = 0.0
    logprob: float = 0.0


class LoraTrainer:
    """Holds the adapter's optimizer and updates the adapter from scored groups."""

    def __init__(
        self, model: LanguageModel, settings: TrainerSettings | None = None, *, seed: int = 0
    ) -> None:
        self.model = model
        self.settings = settings or TrainerSettings()
        if not hasattr(model.network, "peft_config"):
            add_adapter(model, self.settings.lora, seed=seed)
        self.parameters = adapter_parameters(model)
        self.optimizer = torch.optim.AdamW(
            self.parameters.values(),
            lr=self.settings.learning_rate,
            betas=self.settings.betas,
            weight_decay=self.settings.weight_decay,
            foreach=False,
        )

    def step(
        self, groups: Sequence[TrajectoryGroup], settings: TrainerSettings | None = None
    ) -> dict[str, float]:
        """Update the adapter once per epoch; metrics say what was learned from and why, if not.

        `settings` replace the trainer's own from here on, except for the adapter's shape.
        Without any signal the weights do not move at all. Raises `TrainingError` when scored answers
        carry no sampled tokens.
        """
        self.settings = settings or self.settings
        plan = plan_step(groups, self.settings, self.model)
        metrics = dict(plan.metrics)
        if not plan.items:
            return {**metrics, "train/updated": 0.0}
        for parameter_group in self.optimizer.param_groups:
            parameter_group["lr"] = self.settings.learning_rate
        with self.model.lock:
            for _ in range(self.settings.epochs):
                self.optimizer.zero_grad(set_to_none=True)
                sums = self.accumulate(plan.items)
                norm = torch.nn.utils.clip_grad_norm_(
                    list(self.parameters.values()), self.settings.max_grad_norm
                )
                # A bound on the ratio stops the gradient of a loss that is no number: both are looked at.
                is_finite = math.isfinite(norm.item()) and math.isfinite(sums.loss)
                if is_finite:
                    self.optimizer.step()
                else:
                    logger.warning("loss or gradient is not finite; this step leaves the weights as they are")
        self.optimizer.zero_grad(set_to_none=True)
        return {**metrics, **_report(sums, norm.item()), "train/updated": float(is_finite)}

    def accumulate(self, items: Sequence[TrainingItem]) -> _Sums:
        """Add the gradient of the whole step's loss to the adapter's `.grad`."""
        weights = token_weights([item.sequence.trained for item in items], self.settings.policy_loss)
        sums = _Sums()
        for members in _by_prompt(items):
            self._accumulate_prompt([items[i] for i in members], [weights[i] for i in members], sums)
        return sums

    def _accumulate_prompt(self, items: list[TrainingItem], weights: list[float], sums: _Sums) -> None:
        prompt = items[0].sequence.prompt_ids
        size = self.settings.answers_at_once
        with torch.enable_grad():
            prefix = read_prompt(self.model, prompt)
            leaves = _as_leaves(prefix)
            for start in range(0, len(items), size):
                piece = slice(start, start + size)
                loss = self._loss(leaves, items[piece], weights[piece], sums)
                loss.backward()  # type: ignore[no-untyped-call]
            _send_back(prefix, leaves)

    def _loss(
        self, prefix: Prefix, items: list[TrainingItem], weights: list[float], sums: _Sums
    ) -> torch.Tensor:
        config = self.settings.policy_loss
        new = self._logprobs(prefix, items)
        reference = self._reference(items) if config.kl_coef else [None] * len(items)
        total = torch.zeros((), device=self.model.device)
        for item, weight, row, base in zip(items, weights, new, reference, strict=True):
            sampled = torch.tensor(item.sequence.sampled, device=row.device)
            old = (
                torch.tensor(item.sequence.logprobs, device=row.device)[sampled]
                if item.has_logprobs
                else row.detach()[sampled]
            )
            row = row[sampled]
            losses = token_losses(row, old, item.advantage, config)
            if base is not None:
                kl = kl_terms(row, base[sampled], config.kl_estimator)
                losses = losses + config.kl_coef * kl
                sums.kl += float(kl.detach().sum())
            total = total + weight * losses.sum()
            _note(sums, row.detach(), old, config, weight * float(losses.detach().sum()))
        return total

    def _logprobs(self, prefix: Prefix, items: list[TrainingItem]) -> list[torch.Tensor]:
        heat = items[0].sequence.temperature
        return answer_logprobs(self.model, prefix, [i.sequence.ids for i in items], temperature=heat)

    def _reference(self, items: list[TrainingItem]) -> list[torch.Tensor]:
        with torch.no_grad(), self.model.base_only():
            return self._logprobs(read_prompt(self.model, items[0].sequence.prompt_ids), items)


def _by_prompt(items: Sequence[TrainingItem]) -> Iterator[list[int]]:
    """Indices of items that share prompt and temperature, in order of first appearance."""
    found: dict[tuple[tuple[int, ...], float], list[int]] = {}
    for index, item in enumerate(items):
        found.setdefault((item.sequence.prompt_ids, item.sequence.temperature), []).append(index)
    yield from found.values()


def _tensors(prefix: Prefix) -> list[torch.Tensor]:
    return [*prefix.keys, *prefix.values, prefix.last_hidden]


def _as_leaves(prefix: Prefix) -> Prefix:
    """The same numbers, cut off from the graph, gathering gradients of their own."""
    keys = [k.detach().requires_grad_() for k in prefix.keys]
    values = [v.detach().requires_grad_() for v in prefix.values]
    return Prefix(keys, values, prefix.last_hidden.detach().requires_grad_())


def _send_back(prefix: Prefix, leaves: Prefix) -> None:
    """Carry the gradients gathered at the leaves through the prompt."""
    pairs = [
        (tensor, leaf.grad)
        for tensor, leaf in zip(_tensors(prefix), _tensors(leaves), strict=True)
        if tensor.requires_grad and leaf.grad is not None
    ]
    if pairs:
        torch.autograd.backward([t for t, _ in pairs], [g for _, g in pairs])


def _note(sums: _Sums, new: torch.Tensor, old: torch.Tensor, config: PolicyLossConfig, loss: float) -> None:
    difference = new - old
    ratio = torch.exp(difference)
    sums.loss += loss
    sums.tokens += new.numel()
    sums.sampler_kl += float((ratio - difference - 1).sum())
    sums.clipped += int(((ratio < 1 - config.clip_low) | (ratio > 1 + config.clip_high)).sum())
    sums.ratio_error = max(sums.ratio_error, float((ratio - 1).abs().max()))
    sums.logprob += float(new.sum())


def _report(sums: _Sums, norm: float) -> dict[str, float]:
    """The step's metrics; what is not finite is unknown and left out."""
    numbers = {
        "train/loss": sums.loss,
        "train/grad_norm": norm,
        "policy/kl_reference": sums.kl / sums.tokens,
        "policy/kl_sampler": sums.sampler_kl / sums.tokens,
        "policy/clip_fraction": sums.clipped / sums.tokens,
        "policy/ratio_max_error": sums.ratio_error,
        "policy/logprob_mean": sums.logprob / sums.tokens,
        "train/tokens": float(sums.tokens),
    }
    return {name: value for name, value in numbers.items() if math.isfinite(value)}
