"""Rewards of one group -> advantages, the number that each answer's log-probability is pushed by.

Every function takes the rewards of the scored members of one group and gives one advantage each.
Unscored members are not passed in; `advantages` below leaves them out and keeps their places.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean, pstdev, stdev

STD_FLOOR = 0.1
"""Spreads below this are taken as judge noise and are not blown up to full size."""


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
        result.append(value / (spread + epsilon) if spread > 0 else 0.0)
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


def advantages(
    rewards: Sequence[float | None], *, reliability: float = 1.0, kind: str = "floored"
) -> list[float | None]:
    """One advantage per member of a group; None stays None (unscored, excluded, not zero).

    `reliability` (0..1) is how much of the spread is not judge noise; it is applied here and
    nowhere else.
    """
    scored = [r for r in rewards if r is not None]
    if not scored:
        return [None] * len(rewards)
    values = iter(ADVANTAGES[kind](scored))
    return [None if r is None else reliability * next(values) for r in rewards]
