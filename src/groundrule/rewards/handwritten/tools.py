"""A hand-written reward for tool use: how far the task got, at what cost in calls, and where it ended."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from groundrule.data.group import TrajectoryGroup
from groundrule.data.score import Score, Scores
from groundrule.data.trajectory import Trajectory
from groundrule.rewards.handwritten.rag import weighted


@dataclass(frozen=True)
class ToolWeights:
    """What each criterion counts."""

    progress: float = 0.4
    final_state: float = 0.4
    no_waste: float = 0.2


def tool_parts(
    trajectory: Trajectory,
    milestones: Sequence[str],
    *,
    reached: Callable[[Trajectory], bool] | None = None,
    free_calls: int | None = None,
) -> dict[str, float]:
    """The three criteria, each 0 to 1.

    progress: share of `milestones` (names of tools) called in this order, other calls in between allowed.
    final_state: 1 or 0 from `reached`; left out where that is None.
    no_waste: 1 for up to `free_calls` calls (by default as many as milestones), halved by every further one; a call
    repeated with the same arguments counts as two.
    """
    calls = list(_calls(trajectory))
    at = 0
    for name, _ in calls:
        if at < len(milestones) and name == milestones[at]:
            at += 1
    allowed = len(milestones) if free_calls is None else free_calls
    repeats = len(calls) - len(set(calls))
    extra = max(0, len(calls) + repeats - allowed)
    parts = {
        "progress": at / len(milestones) if milestones else 1.0,
        "no_waste": 0.5**extra,
    }
    return parts if reached is None else {**parts, "final_state": float(reached(trajectory))}


@dataclass(frozen=True)
class ToolReward:
    """The weighted mean of the criteria as a `Scorer`."""

    milestones: Sequence[str]
    reached: Callable[[Trajectory], bool] | None = None
    free_calls: int | None = None
    weights: ToolWeights = ToolWeights()

    async def score(self, group: TrajectoryGroup) -> Scores:
        """One score a member."""
        return Scores(self._one(member) for member in group)

    def _one(self, member: Trajectory) -> Score:
        parts = tool_parts(member, self.milestones, reached=self.reached, free_calls=self.free_calls)
        said = ", ".join(f"{name} {v:.2f}" for name, v in parts.items())
        value = weighted(parts, asdict(self.weights))
        return Score(value=value, explanation=said, parts=parts, cost=0.0)


def _calls(trajectory: Trajectory) -> Sequence[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    for message in trajectory.messages():
        for call in message.get("tool_calls") or []:
            function = call.get("function") or {}
            found.append((str(function.get("name")), _canonical(function.get("arguments"))))
    return found


def _canonical(arguments: Any) -> str:
    try:
        return json.dumps(json.loads(arguments) if isinstance(arguments, str) else arguments, sort_keys=True)
    except ValueError:
        return str(arguments)
