"""What rose and what fell over a run: means of its first against its last third."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from groundrule.recipes.judge_eval.history import History, StepFacts


@dataclass(frozen=True)
class Change:
    """Means over the first and the last third of what was recorded."""

    before: float
    after: float

    @property
    def difference(self) -> float:
        return self.after - self.before

    def __str__(self) -> str:
        return f"{self.before:.3f} -> {self.after:.3f}"


def change_of(values: Sequence[float | None]) -> Change | None:
    """None with fewer than two values."""
    known = [value for value in values if value is not None]
    if len(known) < 2:
        return None
    third = max(1, len(known) // 3)
    return Change(fmean(known[:third]), fmean(known[-third:]))


def outcome_checks(history: History) -> dict[str, Change]:
    """Checks that ask whether an answer reached its end; groundedness only where there is no other."""
    checks = all_checks(history)
    outcomes = {name: change for name, change in checks.items() if name != "grounded"}
    return outcomes or checks


def all_checks(history: History) -> dict[str, Change]:
    """Every measure besides the judge that has a before and an after."""
    found = {"verifier": change_of([s.verifier for s in history.steps]) if has_verifier(history) else None}
    for name in sorted({name for s in history.steps for name in s.holdouts}):
        found[f"held-out juror {name}"] = change_of([s.holdouts.get(name) for s in history.steps])
    for name in ("facts", "grounded"):
        found[name] = change_of([e.get("checks", {}).get(name) for e in history.evaluations])
    return {name: change for name, change in found.items() if change is not None}


def has_verifier(history: History) -> bool:
    """Whether the rollouts brought rewards of their own; all equal means that they did not."""
    return len({verdict for group in history.texts for verdict in group.verdicts}) > 1


def recorded(history: History, name: str) -> list[float]:
    """What the steps recorded under a name."""
    return [float(line[name]) for line in history.metrics if line.get(name) is not None]


def last_third(steps: Sequence[StepFacts]) -> Sequence[StepFacts]:
    """The newest steps, one at least."""
    return steps[-max(1, len(steps) // 3) :]
