"""One thing that was looked at in a run, and what was seen."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Alarm:
    """One thing looked at."""

    name: str
    is_raised: bool | None
    """None: the run holds nothing to measure it on."""
    evidence: str
    threshold: str = ""
    remedy: str = ""


def unmeasured(name: str, why: str) -> Alarm:
    """An alarm without anything to look at, and why."""
    return Alarm(name, None, why)
