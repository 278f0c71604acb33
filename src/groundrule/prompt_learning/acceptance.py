"""Whether a new prompt is really better: paired, one-sided, at several looks, with guards.

At each look the sign-flip test of the differences so far is held against the part of the level that belongs to it.
Whatever is no better on average at a look is given up there. A removal need not be better, only not worse by a margin:
a shorter prompt is a gain by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any, Literal

from groundrule.algorithms.sign_flip import sign_flip_p
from groundrule.prompt_learning.trial import Seen

Outcome = Literal["open", "accepted", "futile", "not shown", "guarded"]
"""Not decided; shown to be better; no better on average; better, but not shown; better, but a guard is broken."""
_FEWEST = 4
"""Scenarios without which nothing is decided."""
_SPARE_WORDS = 5.0


@dataclass(frozen=True)
class Bounds:
    """What a new prompt may not do, however the judge likes it."""

    margin: float = 0.02
    """How much worse a prompt without a lesson may be, in scores of the judge."""
    guard_margin: float = 0.05
    """How much worse it may be by each guard."""
    most_longer: float = 0.2
    """By what share answers may grow, beyond five words."""


@dataclass(frozen=True)
class Look:
    """The data so far, and what they were held against."""

    scenarios: int
    mean: float
    p: float
    level: float


@dataclass(frozen=True)
class Standing:
    """How a test stands."""

    outcome: Outcome = "open"
    looks: tuple[Look, ...] = ()
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """For files."""
        return asdict(self)


def looked(
    standing: Standing,
    data: Sequence[Seen],
    level: float,
    *,
    is_last: bool,
    is_removal: bool = False,
    bounds: Bounds = Bounds(),
) -> Standing:
    """The test after one more look at all of its data; `level` is the look's own."""
    bound = -bounds.margin if is_removal else 0.0
    differences = [one.difference for one in data]
    mean = fmean(differences) if differences else 0.0
    p = sign_flip_p(differences, bound=bound)
    after = replace(standing, looks=(*standing.looks, Look(len(data), mean, p, level)))
    if not data:
        return replace(after, reason="no scenario has scores under both prompts")
    is_enough = len(data) >= _FEWEST
    if mean <= bound and (is_enough or is_last):
        return replace(after, outcome="futile", reason=f"no better: {mean:+.3f} on {len(data)} scenarios")
    if p <= level and is_enough:
        broken = broken_guard(data, bounds)
        return replace(after, outcome="guarded" if broken else "accepted", reason=broken or "")
    if is_last:
        reason = f"{mean:+.3f} on {len(data)} scenarios, p {p:.3g}, needed {level:.3g}"
        return replace(after, outcome="not shown", reason=reason)
    return after


def broken_guard(data: Sequence[Seen], bounds: Bounds) -> str | None:
    """Which guard a new prompt breaks, and by how much; None where it keeps all."""
    old, new = (fmean(one.words[side] for one in data) for side in (0, 1))
    if new > old * (1.0 + bounds.most_longer) + _SPARE_WORDS:
        return f"answers grew from {old:.0f} to {new:.0f} words"
    for name in sorted({name for one in data for name in one.guards}):
        gaps = [one.guards[name] for one in data if name in one.guards]
        if fmean(gaps) < -bounds.guard_margin:
            return f"{name} is {fmean(gaps):+.3f}"
    return None
