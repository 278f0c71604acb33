"""The settings of PPO with a critic."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from groundrule.models.lora import LoraSettings


class PpoSettings(BaseModel):
    """How scored trajectories become steps of a policy and of its critic."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    kl_coef: float = Field(default=0.05, ge=0)
    """What a nat away from the reference costs, in units of the score; the first value where it adapts."""
    kl_target: float | None = Field(default=None, gt=0)
    """Nats an answer that the coefficient steers towards (Ziegler et al. 2019, section 2.2); None: it stays."""
    kl_horizon: int = Field(default=10_000, ge=1)
    """Answers in which the coefficient grows or falls by at most a factor of about 1.2."""
    gamma: float = Field(default=1.0, ge=0, le=1)
    """What a reward is worth one token earlier; below 1, long answers are worth less."""
    lam: float = Field(default=0.95, ge=0, le=1)
    """Generalised advantage estimation: 1 trusts what came of an answer, 0 the critic's next value."""
    whiten: bool = True
    """Bring the advantages of a step to mean 0 and variance 1 over its tokens; returns stay as they are."""
    clip: float = Field(default=0.2, gt=0)
    """How far from 1 the ratio of a token may be pushed."""
    value_clip: float | None = Field(default=0.2, gt=0)
    """How far a value may move from that at the start of the step, in units of the score; None: as far as it likes."""
    epochs: int = Field(default=4, ge=1)
    """How often a step passes over its trajectories."""
    trajectories_per_update: int = Field(default=8, ge=1)
    """Whole trajectories in a minibatch, drawn by the seed; each is one update of policy and critic."""
    stop_kl: float | None = Field(default=0.05, gt=0)
    """Nats a token between the policy and the one at the start of the step beyond which the step ends; None: never."""
    critic_warmup_steps: int = Field(default=0, ge=0)
    """First steps in which the critic alone is trained, on answers of the policy as it began."""
    learning_rate: float = Field(default=1e-4, gt=0)
    """Of the policy's adapter; constant."""
    critic_learning_rate: float = Field(default=2e-4, gt=0)
    """Of the critic's adapter and head; constant."""
    max_grad_norm: float = Field(default=1.0, gt=0)
    """Of policy and critic, each by itself."""
    truncated_penalty: float = Field(default=0.0, ge=0)
    """Taken off the score of an answer that was cut at its length limit, to which a reward model may be blind."""
    apart: bool = False
    """Reference and critic as models of their own instead of one shared base; a reward model keeps its own too."""
    tokens_at_once: int = Field(default=1024, ge=1)
    """Unique tokens in one graph: bounds memory, does not change the gradient."""
    share_prefixes: bool = True
    """False computes every sequence by itself: the same gradient, for comparison."""
    lora: LoraSettings = LoraSettings()
    """Shape of the critic's adapter, and of the policy's where it has none yet."""

    @model_validator(mode="after")
    def _can_adapt(self) -> Self:
        if self.kl_target is not None and self.kl_coef == 0:
            raise ValueError(
                f"kl_target is {self.kl_target}, but kl_coef is 0 and is adapted by factors, so it would stay 0; "
                "begin with a small one, for example 0.05"
            )
        return self
