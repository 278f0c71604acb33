"""Which steps of a stage are worth a line."""

from __future__ import annotations

LINES = 12


def told(step: int, steps: int) -> bool:
    """Whether to report this step: the first, the last, and about a dozen in all."""
    return step in (1, steps) or step % max(1, steps // LINES) == 0
