"""The ends of a bootstrap's interval."""

from __future__ import annotations

from collections.abc import Iterable


def middle_95(drawn: Iterable[float]) -> tuple[float, float]:
    """The 2.5th and the 97.5th percentile of what was drawn: the percentile interval of Efron (1979)."""
    ordered = sorted(drawn)
    return ordered[int(0.025 * len(ordered))], ordered[int(0.975 * len(ordered)) - 1]
