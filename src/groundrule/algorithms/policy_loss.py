"""Policy-gradient losses for one sampled sequence, and how sequences are weighed into one number.

All work on the log-probabilities of the sampled tokens, tensors of shape (tokens,), and give a loss
per token. A step's loss is the sum of token losses times `token_weights`, so it is the same however
the step is split into pieces.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict

Loss = Literal["clipped", "gspo", "cispo"]
Aggregation = Literal["token_mean", "sequence_mean", "fixed_length"]
KlEstimator = Literal["k1", "k2", "k3"]

_LONGEST_LOG_RATIO = 20.0


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


def token_losses(
    new: torch.Tensor, old: torch.Tensor, advantage: float, config: PolicyLossConfig
) -> torch.Tensor:
    """Loss of each sampled token of one sequence: (tokens,).

    clipped: -min(ratio A, clip(ratio, 1 - low, 1 + high) A), PPO (Schulman et al. 2017, eq. 7).
    gspo: the same with one ratio a sequence, exp(mean log ratio) (Zheng et al. 2025, eq. 5-7).
    cispo: -min(ratio, 1 + high) A log p with the weight held constant (MiniMax 2025); the cap is
    1 + clip_high, while the paper's text leaves it as a free number.

    Log ratios beyond +-20 are taken as +-20, so that no infinite ratio meets an advantage of 0.
    """
    log_ratio = (new - old).clamp(-_LONGEST_LOG_RATIO, _LONGEST_LOG_RATIO)
    if config.loss == "cispo":
        return -torch.exp(log_ratio).clamp(max=1 + config.clip_high).detach() * advantage * new
    if config.loss == "gspo":
        log_ratio = log_ratio.mean().expand_as(log_ratio)
    ratio = torch.exp(log_ratio)
    clipped = ratio.clamp(1 - config.clip_low, 1 + config.clip_high)
    losses = torch.maximum(-advantage * ratio, -advantage * clipped)
    if config.dual_clip is not None and advantage < 0:
        losses = losses.clamp(max=-advantage * config.dual_clip)
    return losses


def kl_terms(new: torch.Tensor, reference: torch.Tensor, estimator: KlEstimator = "k3") -> torch.Tensor:
    """Per-token estimates of KL(new || reference) from tokens sampled by `new` (Schulman 2020): (tokens,).

    With d = reference - new: k1 = -d, k2 = d^2 / 2, k3 = exp(d) - d - 1.
    """
    difference = reference - new
    if estimator == "k1":
        return -difference
    if estimator == "k2":
        return difference.square() / 2
    return torch.exp(difference) - difference - 1


def token_weights(lengths: Sequence[int], config: PolicyLossConfig) -> list[float]:
    """The weight of each token of each sequence, so that a weighted sum is the step's loss.

    token_mean: 1 / all tokens of the step (DAPO). sequence_mean: the mean over sequences of token
    means (the GRPO paper). fixed_length: 1 / (sequences x fixed_length) (Dr. GRPO).
    """
    if not any(lengths):
        return [0.0] * len(lengths)
    if config.aggregation == "token_mean":
        return [1.0 / sum(lengths)] * len(lengths)
    if config.aggregation == "sequence_mean":
        return [1.0 / (len(lengths) * n) if n else 0.0 for n in lengths]
    return [1.0 / (len(lengths) * config.fixed_length)] * len(lengths)
