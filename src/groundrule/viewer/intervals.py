"""How sure a difference is: between two evaluations by a paired bootstrap over the scenarios, between two spans of
steps by standard errors over the answers."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from statistics import fmean

from groundrule._util.seed import derive
from groundrule.algorithms.bootstrap import middle_95

RESAMPLES = 2000
FEWEST = 5
"""With fewer scenarios or groups than this nothing is said of how sure a difference is."""


@dataclass(frozen=True)
class Change:
    """The same measure before and after."""

    before: float
    after: float
    count: int
    low: float | None = None
    """Ends of the 95% interval of after - before; None where it is not known."""
    high: float | None = None

    @property
    def difference(self) -> float:
        return self.after - self.before

    @property
    def margin(self) -> float | None:
        """Half of the interval's width."""
        return None if self.low is None or self.high is None else (self.high - self.low) / 2

    @property
    def is_clear(self) -> bool:
        """Whether the interval leaves out zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def paired_change(pairs: Sequence[tuple[float, float]], *, name: str) -> Change | None:
    """Before and after, with the percentile interval of the mean difference.

    Scenarios are drawn, not answers: the two answers to a question stay together. The draws are
    seeded by `name`, so a page made twice is the same page. None without pairs.
    """
    if not pairs:
        return None
    before, after = fmean(b for b, _ in pairs), fmean(a for _, a in pairs)
    if len(pairs) < FEWEST:
        return Change(before, after, len(pairs))
    draw = random.Random(derive("interval", name, len(pairs)))
    differences = [a - b for b, a in pairs]
    times = max(200, min(RESAMPLES, 200_000 // len(pairs)))
    drawn = (fmean(draw.choices(differences, k=len(differences))) for _ in range(times))
    return Change(before, after, len(pairs), *middle_95(drawn))


def change_of_means(before: Sequence[Sequence[float]], after: Sequence[Sequence[float]]) -> Change | None:
    """Means over all answers of two spans of steps, with an interval of two standard errors to either side.

    Answers of one group are answers to the same question, so the groups are what varies independently
    (Liang and Zeger 1986). None where a span has no answer.
    """
    if not before or not after:
        return None
    start, end = (fmean(chain.from_iterable(span)) for span in (before, after))
    count = sum(map(len, before)) + sum(map(len, after))
    if min(len(before), len(after)) < FEWEST:
        return Change(start, end, count)
    margin = 2 * math.hypot(_standard_error(before), _standard_error(after))
    return Change(start, end, count, end - start - margin, end - start + margin)


def _standard_error(groups: Sequence[Sequence[float]]) -> float:
    """Of the mean over all values; for groups of one it is the ordinary one."""
    mean = fmean(chain.from_iterable(groups))
    squares = sum(sum(value - mean for value in group) ** 2 for group in groups)
    return math.sqrt(squares * len(groups) / (len(groups) - 1)) / sum(map(len, groups))
