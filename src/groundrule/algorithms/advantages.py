"""Rewards of one group -> advantages, the number that each answer's log-probability is pushed by.

Every function takes the rewards of the scored members of one group and gives one advantage each.
Unscored members are not passed in; `advantages` below leaves them out and keeps their places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite, sqrt
from statistics import fmean, pstdev, stdev

STD_FLOOR = 0.1
"""Spreads below this are taken as judge noise and are not blown up to full size."""

_ROUNDING = 1e-9
"""A spread below this is what rounding leaves of equal rewards."""


def floored(rewards: Sequence[float]) -> list[float]:
    """(r - mean) / max(population std, 0.1): GRPO (Shao et al. 2024, eq. 4.1) with a floor under the spread.

    The paper divides by the std alone, which turns two answers that differ by 0.001 into a full-size
    signal. A group of one, or of equals, gets zeros.
    """
    mean = fmean(rewards)
    scale = max(pstdev(rewards), STD_FLOOR)
    return [(r - mean) / scale for r in rewards]


def group_std(rewards: Sequence[float], *, unbiased: bool = True, epsilon: float = 1e-6) -> list[float]:
    """(r - mean) / (std + epsilon), plain GRPO; `unbiased` divides the variance by n - 1."""
    mean = fmean(rewards)
    spread = (stdev(rewards) if unbiased else pstdev(rewards)) if len(rewards) > 1 else 0.0
    return [(r - mean) / (spread + epsilon) for r in rewards]


def population_std(rewards: Sequence[float]) -> list[float]:
    """Plain GRPO with the population std."""
    return group_std(rewards, unbiased=False)


def mean_only(rewards: Sequence[float]) -> list[float]:
    """r - mean: Dr. GRPO (Liu et al. 2025), no division."""
    mean = fmean(rewards)
    return [r - mean for r in rewards]


def leave_one_out(rewards: Sequence[float]) -> list[float]:
    """Each reward minus the mean of the others: RLOO (Ahmadian et al. 2024).

    A group of one has no baseline and gets 0.0: it teaches nothing.
    """
    total, n = sum(rewards), len(rewards)
    return [r - (total - r) / (n - 1) for r in rewards] if n > 1 else [0.0] * n


def leave_one_out_std(rewards: Sequence[float], *, epsilon: float = 1e-6) -> list[float]:
    """Leave-one-out, divided by the unbiased std of the others; 0.0 where the others do not differ.

    Needs three members; smaller groups get zeros.
    """
    if len(rewards) < 3:
        return [0.0] * len(rewards)
    result = []
    for i, value in enumerate(leave_one_out(rewards)):
        spread = stdev([r for j, r in enumerate(rewards) if j != i])
        result.append(value / (spread + epsilon) if spread > _ROUNDING else 0.0)
    return result


def relative(rewards: Sequence[float]) -> list[float]:
    """(r - mean) / mean, for rewards that are success rates (MaxRL); zeros when the mean is not positive."""
    mean = fmean(rewards)
    return [(r - mean) / mean for r in rewards] if mean > 0 else [0.0] * len(rewards)


ADVANTAGES: dict[str, Callable[[Sequence[float]], list[float]]] = {
    "floored": floored,
    "group_std": group_std,
    "population_std": population_std,
    "mean_only": mean_only,
    "leave_one_out": leave_one_out,
    "leave_one_out_std": leave_one_out_std,
    "relative": relative,
}


def tie_band(rewards: Sequence[float], width: float) -> list[float]:
    """Rewards in order, with those that are too close to tell apart replaced by their mean.

    Neighbours are joined, closest first, while two clusters of sizes m and n have means less than
    width * sqrt(1/m + 1/n) apart: the standard error of their difference when `width` is that of one reward.
    The order is never turned around, and the mean of the group stays. A width of 0 changes nothing.
    """
    clusters = [[i] for i in sorted(range(len(rewards)), key=lambda i: rewards[i])]
    means = [rewards[i] for (i,) in clusters]
    while width > 0 and len(clusters) > 1:
        gaps = [
            (means[k + 1] - means[k]) / sqrt(1 / len(clusters[k]) + 1 / len(clusters[k + 1]))
            for k in range(len(clusters) - 1)
        ]
        closest = min(range(len(gaps)), key=lambda k: gaps[k])
        if gaps[closest] >= width:
            break
        clusters[closest] += clusters.pop(closest + 1)
        means.pop(closest + 1)
        means[closest] = fmean(rewards[i] for i in clusters[closest])
    banded = [0.0] * len(rewards)
    for cluster, mean in zip(clusters, means, strict=True):
        for i in cluster:
            banded[i] = mean
    return banded


def whitened(values: Sequence[float], tokens: Sequence[int]) -> list[float]:
    """Advantages of a step's answers at mean 0 and variance 1 over all its tokens, as REINFORCE++ has them.

    The variance is the unbiased one over tokens, with 1e-8 added (`masked_whiten` elsewhere). An answer's tokens
    share its advantage, so long answers weigh more. With fewer than two tokens everything is 0.
    """
    total = sum(tokens)
    if total < 2:
        return [0.0] * len(values)
    mean = sum(v * n for v, n in zip(values, tokens, strict=True)) / total
    variance = sum(n * (v - mean) ** 2 for v, n in zip(values, tokens, strict=True)) / (total - 1)
    return [(v - mean) / sqrt(variance + 1e-8) for v in values]


def advantages(
    rewards: Sequence[float | None],
    *,
    reliability: float = 1.0,
    kind: str = "floored",
    noise: float = 0.0,
) -> list[float | None]:
    """One advantage per member of a group; None stays None (unscored, excluded, not zero).

    `reliability` (0..1) is how much of the spread is not judge noise; it is applied here and
    nowhere else. `noise` is the standard error of one reward; above 0, rewards within it are tied first
    (`tie_band`).
    """
    scored = [r for r in rewards if r is not None]
    wrong = next((i for i, r in enumerate(rewards) if r is not None and not isfinite(r)), None)
    if wrong is not None:
        raise ValueError(
            f"the reward of member {wrong} is {rewards[wrong]}; a reward is a finite number or None"
        )
    if not scored:
        return [None] * len(rewards)
    values = iter(ADVANTAGES[kind](tie_band(scored, noise)))
    return [None if r is None else reliability * next(values) for r in rewards]
