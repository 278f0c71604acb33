"""Policy-gradient losses for one sampled sequence, and how sequences are weighed into one number.

All work on the log-probabilities of the sampled tokens, tensors of shape (tokens,), and give a loss
per token. A step's loss is the sum of token losses times `token_weights`, so it is the same however
the step is split into pieces.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from groundrule.algorithms.loss_settings import KlEstimator, PolicyLossConfig

_LONGEST_LOG_RATIO = 20.0


def token_losses(
    new: torch.Tensor, old: torch.Tensor, advantage: float | torch.Tensor, config: PolicyLossConfig
) -> torch.Tensor:
    """Loss of each sampled token of one sequence: (tokens,). The advantage is one number, or one a token: (tokens,).

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
    if config.dual_clip is not None:
        each = torch.as_tensor(advantage, dtype=losses.dtype, device=losses.device).expand_as(losses)
        losses = torch.where(each < 0, torch.minimum(losses, -each * config.dual_clip), losses)
    return losses


def importance_weights(
    proximal: torch.Tensor, behaviour: torch.Tensor, config: PolicyLossConfig
) -> torch.Tensor:
    """What each sampled token of one sequence counts: min(pi_proximal / pi_behaviour, cap), constant: (tokens,).

    The behaviour policy sampled the tokens; the proximal policy is the one at the start of the step, which the
    clipped ratio is taken against (the decoupled objective of Hilton et al. 2021, eq. 5). Keeping the two apart
    corrects for old or differently computed samples without moving the clip's centre away from 1. Truncation is
    that of Ionides 2008. token: one ratio a token, as in Yao et al. 2025 ("Your efficient RL framework secretly
    brings you off-policy RL training"). sequence: the ratio of the whole answer, exp(sum of log ratios), which is
    unbiased before truncation and of larger variance (Liu et al. 2025, "When speed kills stability"; TRL's
    sequence mode). Log ratios beyond +-20 are taken as +-20.
    """
    log_ratio = (proximal - behaviour).detach()
    if config.importance == "none":
        return torch.ones_like(log_ratio)
    if config.importance == "sequence":
        log_ratio = log_ratio.sum().expand_as(log_ratio)
    ratio = torch.exp(log_ratio.clamp(-_LONGEST_LOG_RATIO, _LONGEST_LOG_RATIO))
    return ratio.clamp(max=config.importance_cap)


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
