"""Where the groups of a step come from: gathered for the step, or taken from a stream that never stops.

In the stream, attempts go on with policy v while v + 1 is trained. A group is trained on at most
`train.max_staleness` steps after the oldest policy that it was sampled by; an older one is dropped
and counted. The trainer corrects for the difference (`train.importance`).
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from functools import partial
from statistics import fmean
from typing import Protocol

from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import is_choice
from groundrule.data.scenario import Scenario
from groundrule.data.trajectory import Trajectory
from groundrule.recipes.answer_metrics import answer_metrics
from groundrule.recipes.dynamic_sampling import drawn_again, is_level, other_scenarios, rounds_of
from groundrule.recipes.judging import judge_metrics
from groundrule.recipes.scored_groups import costs_so_far, gather, judged_groups
from groundrule.recipes.training import Training
from groundrule.rollouts.scenarios import draw

Metrics = dict[str, float | None]
DRAW = "draw"
"""Group metadata: which draw of a scenario, counted from 0 over the run."""
BEGUN = "begun_at_version"
"""Group metadata: the version that answered when the group's attempts began."""


class Source(Protocol):
    """Gives every step its scored groups."""

    async def groups_for(self, step: int) -> tuple[list[TrajectoryGroup], Metrics]: ...

    async def settle(self) -> None:
        """Let what is under way finish: the policy is needed for something else."""
        ...

    async def close(self) -> None: ...


def source_of(t: Training) -> Source:
    """The stream where staleness is allowed, else one gather a step."""
    return Stream(t) if t.config.train.max_staleness else StepByStep(t)


class StepByStep:
    """Every step gathers its own groups from the newest policy, in lockstep: same run, same bytes."""

    def __init__(self, t: Training) -> None:
        self.t = t

    async def groups_for(self, step: int) -> tuple[list[TrajectoryGroup], Metrics]:
        t, train, seed = self.t, self.t.config.train, self.t.config.run.seed
        drawn = draw(t.scenarios, step, train.groups_per_step, seed)
        judged = await judged_groups(t, step, drawn)
        taken = {scenario.id for scenario in drawn}
        return await drawn_again(
            judged,
            rounds_of(train),
            partial(judged_groups, t, step),
            lambda round_, count: other_scenarios(
                t.scenarios, taken, count, seed=seed, step=step, round_=round_
            ),
        )

    async def settle(self) -> None: ...

    async def close(self) -> None: ...


class Stream:
    """Groups under way for this step and the next ones, taken in the order in which they are complete."""

    def __init__(self, t: Training) -> None:
        self.t = t
        self.dropped = 0
        self._draws = self._left_to_draw()
        self._under_way: set[asyncio.Task[TrajectoryGroup]] = set()
        self._complete: deque[TrajectoryGroup] = deque()

    async def groups_for(self, step: int) -> tuple[list[TrajectoryGroup], Metrics]:
        train = self.t.config.train
        dropped, replaced = self.dropped, 0
        most = rounds_of(train) * train.groups_per_step
        taken: list[TrajectoryGroup] = []
        while len(taken) < train.groups_per_step:
            self._start_more(room=train.groups_per_step * (1 + train.max_staleness) - len(taken))
            if not self._complete:
                await self._wait(asyncio.FIRST_COMPLETED)
                continue
            group = self._complete.popleft()
            if step - 1 - version_of(group) > train.max_staleness:
                self.dropped += 1
            elif replaced < most and is_level(group):
                replaced += 1
            else:
                taken.append(group)
        self._start_more(
            room=train.groups_per_step * train.max_staleness
        )  # For the next steps, beside the update.
        ages = [float(step - 1 - version_of(group)) for group in taken]
        return taken, {
            **judge_metrics(taken),
            **answer_metrics(taken),
            **costs_so_far(),
            **({"train/groups_replaced": float(replaced)} if most else {}),
            "async/staleness_mean": fmean(ages),
            "async/staleness_max": max(ages),
            "async/dropped_stale": float(self.dropped - dropped),
        }

    async def settle(self) -> None:
        while self._under_way:
            await self._wait(asyncio.ALL_COMPLETED)

    async def close(self) -> None:
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)

    def _start_more(self, *, room: int) -> None:
        while len(self._under_way) + len(self._complete) < room:
            self._under_way.add(asyncio.ensure_future(self._group(*next(self._draws))))

    async def _wait(self, when: str) -> None:
        """Take in what is complete by then; an error of any group stops the run."""
        done, self._under_way = await asyncio.wait(self._under_way, return_when=when)
        errors = [error for task in done if (error := task.exception()) is not None]
        if errors:
            raise errors[0]
        self._complete.extend(task.result() for task in done)

    async def _group(self, number: int, scenario: Scenario) -> TrajectoryGroup:
        t = self.t
        version = await t.model.get_step()
        policy = t.model.policy(version=version)

        async def attempt(scenario: Scenario) -> Trajectory:
            return await t.rollout(policy, scenario)

        [group] = await gather(t, [scenario], attempt, t.scorer, {scenario.id})
        return group.with_members(group, metadata={**group.metadata, DRAW: number, BEGUN: version})

    def _left_to_draw(self) -> Iterator[tuple[int, Scenario]]:
        """Draws in order, without those that a finished step has trained on."""
        t, trained = self.t, set()
        for step in t.run.trajectory_steps():
            trained |= {group.metadata.get(DRAW) for group in t.run.groups(step)}
        return (each for each in self._all_draws() if each[0] not in trained)

    def _all_draws(self) -> Iterator[tuple[int, Scenario]]:
        t, round_, number = self.t, 0, 0
        while True:
            round_ += 1
            for scenario in draw(t.scenarios, round_, t.config.train.groups_per_step, t.config.run.seed):
                yield number, scenario
                number += 1


def version_of(group: TrajectoryGroup) -> int:
    """The oldest policy that any of the group's answers was sampled by."""
    begun = int(group.metadata.get(BEGUN, 0))
    sampled = [
        int(version)
        for member in group
        for item in member.messages_and_choices
        if is_choice(item) and (version := getattr(item, "policy_version", None)) is not None
    ]
    return min(sampled, default=begun)
