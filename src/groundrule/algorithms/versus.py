"""Two policies against each other on the same prompts: by how much, and how often the second one wins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from groundrule.algorithms.agreement import Measured, bootstrap

Pair = tuple[float, float]
"""What a judge gave an answer of the first policy and one of the second."""


@dataclass(frozen=True)
class Versus:
    """Means over prompts; intervals by a bootstrap over prompts."""

    prompts: int
    pairs: int
    first: float
    second: float
    difference: Measured
    """second - first."""
    win_rate: Measured
    """How often the second policy's answer is the better one; level ones count half. No difference: 0.5."""


def versus(prompts: Sequence[Sequence[Pair]], *, level: float = 1e-9) -> Versus | None:
    """From the pairs of every prompt; prompts without pairs are left out, and without any there is no result.

    Scores that differ by at most `level` are level.
    """
    known = [pairs for pairs in prompts if pairs]
    if not known:
        return None
    firsts = [fmean(first for first, _ in pairs) for pairs in known]
    seconds = [fmean(second for _, second in pairs) for pairs in known]
    wins = [fmean(_win(second - first, level) for first, second in pairs) for pairs in known]
    return Versus(
        prompts=len(known),
        pairs=sum(map(len, known)),
        first=fmean(firsts),
        second=fmean(seconds),
        difference=mean_of([b - a for a, b in zip(firsts, seconds, strict=True)]),
        win_rate=mean_of(wins),
    )


def mean_of(values: Sequence[float]) -> Measured:
    """The mean of one number a prompt, with its interval."""
    return bootstrap(values, fmean)


def _win(gap: float, level: float) -> float:
    return 0.5 if abs(gap) <= level else float(gap > 0)
