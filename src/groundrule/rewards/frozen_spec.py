"""Judge answers by the system prompt they should follow, not by the one they were given.

A prompt that is being edited must not be its own authority: one that lowers the bar would score best. So the judge is
shown every attempt under the frozen spec.
"""

from __future__ import annotations

from dataclasses import dataclass

from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import message_of
from groundrule.data.protocols import Scorer
from groundrule.data.score import Score
from groundrule.data.trajectory import MessagesAndChoices, Trajectory

_SYSTEM = ("system", "developer")


@dataclass(frozen=True)
class FrozenSpec:
    """A `Scorer` that shows another scorer each attempt as if its agent had been given the spec alone."""

    scorer: Scorer
    spec: str

    async def score(self, group: TrajectoryGroup) -> list[Score]:
        """What the other scorer says."""
        return await self.scorer.score(group.with_members(under_spec(t, self.spec) for t in group))


def by_spec(scorer: Scorer, spec: str | None) -> Scorer:
    """The scorer under the spec; as it is where there is none."""
    return scorer if spec is None else FrozenSpec(scorer, spec)


def under_spec(trajectory: Trajectory, spec: str) -> Trajectory:
    """The attempt with the spec for its system prompt, in every conversation; nothing else changes."""
    histories = [
        history.model_copy(update={"messages_and_choices": _under(history.messages_and_choices, spec)})
        for history in trajectory.additional_histories
    ]
    return trajectory.model_copy(
        update={
            "messages_and_choices": _under(trajectory.messages_and_choices, spec),
            "additional_histories": histories,
        }
    )


def _under(turns: MessagesAndChoices, spec: str) -> MessagesAndChoices:
    start = 0
    while start < len(turns) and message_of(turns[start]).get("role") in _SYSTEM:
        start += 1
    opening = [{"role": "system", "content": spec}] if spec else []
    return [*opening, *turns[start:]]
