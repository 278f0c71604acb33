"""The settings of a policy-gradient step, without the tensors: what a configuration or a preset names."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Loss = Literal["clipped", "gspo", "cispo"]
Aggregation = Literal["token_mean", "sequence_mean", "fixed_length"]
KlEstimator = Literal["k1", "k2", "k3"]
Importance = Literal["none", "token", "sequence"]
Truncated = Literal["train", "mask", "drop"]
"""An answer that was cut at its length limit. train: like any other. mask: its reward counts in the group's mean, but
its tokens are not pushed (the overlong filtering of DAPO, Yu et al. 2025). drop: as if it had no score."""


class PolicyLossConfig(BaseModel):
    """Which loss, with which bounds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    loss: Loss = "clipped"
    clip_low: float = 0.2
    clip_high: float = 0.28
    """DAPO's higher upper bound (Yu et al. 2025): unlikely tokens may grow faster than likely ones shrink."""
    dual_clip: float | None = None
    """With A < 0 the loss is at most this times |A| (Ye et al. 2020); None: no bound."""
    aggregation: Aggregation = "token_mean"
    fixed_length: int = 256
    """What `fixed_length` divides by, in tokens a sequence."""
    kl_coef: float = 0.0
    kl_estimator: KlEstimator = "k3"
    importance: Importance = "none"
    """Whether what was sampled by other weights is reweighted, and by what; see `policy_loss.importance_weights`."""
    importance_cap: float = Field(default=2.0, gt=0)
