"""Reference answers beside the sampled ones: right ones, and ones that only sound right."""

from __future__ import annotations

import random
from collections.abc import Sequence

from groundrule.data.group import TrajectoryGroup
from groundrule.data.scenario import Scenario
from groundrule.data.trajectory import Trajectory


def with_references(
    group: TrajectoryGroup, scenarios: Sequence[Scenario], count: int, *, seed: int, system: str | None = None
) -> TrajectoryGroup:
    """The group with the reference of its scenario, and so many of other scenarios that there are `count` in all.

    The others are drawn by the seed; written as well, they answer something else. Scenarios without a reference give
    none.
    """
    own = next((s for s in scenarios if s.id == group.scenario_id), None)
    if own is None or count < 1:
        return group
    others = [s.reference for s in scenarios if s.id != own.id and s.reference]
    rng = random.Random(f"{seed}/references/{own.id}")
    drawn = rng.sample(others, min(count - 1, len(others)))
    texts = [text for text in (own.reference, *drawn) if text]
    opening = own.messages(system=system)
    added = [Trajectory(messages_and_choices=[*opening, {"role": "assistant", "content": t}]) for t in texts]
    return group.with_members([*group.trajectories, *added])
