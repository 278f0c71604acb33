"""GRPO on LoRA weights: scored groups in, one optimizer step out.

What the sequences of a step share is computed once (`models.tree`), only positions that predict a trained token
reach the output layer, and memory is bounded by `tokens_at_once` while the gradient is that of the whole step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import BaseModel, ConfigDict, Field, field_validator

from groundrule.algorithms.advantages import ADVANTAGES
from groundrule.algorithms.loss_settings import PolicyLossConfig, Truncated
from groundrule.data.group import TrajectoryGroup
from groundrule.models.load import LanguageModel
from groundrule.models.lora import LoraSettings, adapter_parameters, add_adapter, has_adapter
from groundrule.training.batch import TrainingItem, plan_step
from groundrule.training.optimizing import adamw, set_learning_rate, take_step
from groundrule.training.step_gradient import StepGradient, Sums


class TrainerSettings(BaseModel):
    """How scored groups become a step."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    learning_rate: float = Field(default=1e-4, gt=0)
    advantage: str = "floored"
    """A name from `algorithms.advantages.ADVANTAGES`."""
    tie_band: float = Field(default=0.0, ge=0)
    """Rewards closer than so many standard errors of the judge are tied; see `algorithms.advantages.tie_band`."""
    whiten: bool = False
    """Bring the advantages of a step to mean 0 and variance 1 over its tokens; see `algorithms.advantages.whitened`."""
    truncated: Truncated = "train"
    """What an answer is worth that was cut at its length limit; see `algorithms.loss_settings.Truncated`."""
    policy_loss: PolicyLossConfig = PolicyLossConfig()
    epochs: int = Field(default=1, ge=1)
    """Optimizer steps on the same groups."""
    max_grad_norm: float = 1.0
    weight_decay: float = 0.0
    betas: tuple[float, float] = (0.9, 0.99)
    tokens_at_once: int = Field(default=1024, ge=1)
    """Unique tokens in one graph: bounds memory, does not change the gradient. Only branches are split apart: a
    single sequence that is longer goes through whole."""
    gradient_checkpointing: bool = False
    """Compute each layer twice and keep one hidden state of it: a third more time, a fraction of the memory."""
    share_prefixes: bool = True
    """False computes every sequence by itself: the same gradient, for comparison."""
    lora: LoraSettings = LoraSettings()
    allow_training_without_logprobs: bool = False

    @field_validator("advantage")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in ADVANTAGES:
            raise ValueError(f"{name!r} is not an advantage; choose one of {', '.join(ADVANTAGES)}")
        return name


class LoraTrainer:
    """Holds the adapter's optimizer and updates the adapter from scored groups."""

    def __init__(
        self, model: LanguageModel, settings: TrainerSettings | None = None, *, seed: int = 0
    ) -> None:
        self.model = model
        self.settings = settings or TrainerSettings()
        if not has_adapter(model):
            add_adapter(model, self.settings.lora, seed=seed)
        self.parameters = adapter_parameters(model)
        self.optimizer = adamw(
            self.parameters,
            self.settings.learning_rate,
            betas=self.settings.betas,
            weight_decay=self.settings.weight_decay,
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
        set_learning_rate(self.optimizer, self.settings.learning_rate)
        gradient = StepGradient(self.model, plan.items, self.settings)
        with self.model.lock:
            for _ in range(self.settings.epochs):
                self.optimizer.zero_grad(set_to_none=True)
                sums = gradient.accumulate()
                norm, is_updated = take_step(
                    self.optimizer, sums.loss, max_grad_norm=self.settings.max_grad_norm
                )
        if math.isfinite(norm):
            metrics["train/grad_norm"] = norm
        return {
            **metrics,
            **gradient.sizes,
            **sums.report(self.settings.policy_loss),
            "train/updated": float(is_updated),
        }

    def accumulate(self, items: Sequence[TrainingItem]) -> Sums:
        """Add the gradient of the whole step's loss to the adapter's `.grad`."""
        return StepGradient(self.model, items, self.settings).accumulate()
