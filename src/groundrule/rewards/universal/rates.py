"""A share of few trials with its interval."""

from __future__ import annotations

import math
from dataclasses import dataclass

_Z = 1.959964
"""Of a normal distribution: 95 % lie within so many standard deviations."""


@dataclass(frozen=True)
class Rate:
    """So many of so many."""

    hits: int
    of: int

    @property
    def share(self) -> float | None:
        """None without trials."""
        return self.hits / self.of if self.of else None

    @property
    def ci95(self) -> tuple[float, float] | None:
        """Wilson's interval, which holds for few trials and for none or all of them."""
        if not self.of:
            return None
        share, extra = self.hits / self.of, _Z * _Z / self.of
        middle = (share + extra / 2) / (1 + extra)
        half = _Z / (1 + extra) * math.sqrt(share * (1 - share) / self.of + extra / (4 * self.of))
        return max(0.0, middle - half), min(1.0, middle + half)

    def __str__(self) -> str:
        if self.ci95 is None:
            return "none of 0"
        low, high = self.ci95
        return f"{self.hits} of {self.of} ({self.hits / self.of:.1%}, 95 % interval {low:.1%} to {high:.1%})"
