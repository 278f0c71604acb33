"""How sure a difference between two evaluations is: a paired bootstrap over the scenarios."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from groundrule._util.seed import derive
from groundrule.algorithms.bootstrap import middle_95

RESAMPLES = 2000


@dataclass(frozen=True)
class Change:
    """The same measure before and after, over the scenarios that have both."""

    before: float
    after: float
    count: int
    low: float | None = None
    """Ends of the 95% interval of after - before; None with fewer than five scenarios."""
    high: float | None = None

    @property
    def difference(self) -> float:
        return self.after - self.before

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
    if len(pairs) < 5:
        return Change(before, after, len(pairs))
    draw = random.Random(derive("interval", name, len(pairs)))
    differences = [a - b for b, a in pairs]
    times = max(200, min(RESAMPLES, 200_000 // len(pairs)))
    drawn = (fmean(draw.choices(differences, k=len(differences))) for _ in range(times))
    return Change(before, after, len(pairs), *middle_95(drawn))
