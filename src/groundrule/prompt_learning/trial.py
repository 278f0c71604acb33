"""A blind trial of prompts: answers under the old one and the new ones stand in the same judged groups.

Every arm answers the same scenarios with the same seeds, members are shuffled, and the judge is shown each of them
under the frozen spec. So it cannot know which prompt an answer comes from, and what differs between tasks and between
judgements falls out of the comparison.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from groundrule._util.aio import or_raise, settle
from groundrule._util.seed import derive
from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import last_answer
from groundrule.data.protocols import Policy, Rollout, Scorer
from groundrule.data.scenario import Scenario
from groundrule.data.trajectory import Trajectory
from groundrule.llm.watched import all_or_nothing
from groundrule.rewards.apply import apply_scores
from groundrule.rewards.frozen_spec import FrozenSpec
from groundrule.rewards.scoring import scores_or_reasons
from groundrule.rollouts.gather import gather_trajectory_groups

JUDGE = "ruler"


@dataclass(frozen=True)
class Seen:
    """What one scenario showed of a new prompt beside the old one."""

    scenario_id: str
    difference: float
    """Of the mean scores: new - old."""
    words: tuple[float, float]
    """Of an answer, old and new."""
    guards: Mapping[str, float] = field(default_factory=dict)
    """Of the means of other scorers: new - old; those that gave no score are missing."""


def scenario_facts(scenario: Scenario) -> dict[str, Any]:
    """Question, passage and metadata; never its reference, which only a verifier may see."""
    return {**scenario.metadata, "question": scenario.question, "context": scenario.context}


@dataclass
class Trial:
    """Who answers, who judges, and how often."""

    spec: str
    rollout: Rollout
    policy: Policy
    scorer: Scorer
    guards: Mapping[str, Scorer] = field(default_factory=dict)
    """Further scorers that a new prompt must not be worse by."""
    attempts: int = 2
    """Of each prompt at each scenario."""
    max_concurrency: int | None = 64
    max_exceptions: float = 0.5
    timeout_s: float | None = 600.0
    facts: Callable[[Scenario], dict[str, Any]] = field(default=scenario_facts)
    """What scorers may know of a scenario."""
    rollouts: int = field(default=0, init=False)
    """Attempts made so far."""

    async def groups(
        self, prompts: Sequence[str], scenarios: Sequence[Scenario], *seed: object
    ) -> list[TrajectoryGroup]:
        """A scored group for each scenario, with `attempts` answers under each prompt.

        Raises `BudgetError` where the budget ends in the middle: half a comparison is none.
        """
        with all_or_nothing():
            gathered = await gather_trajectory_groups(
                [self._pending(prompts, scenario, *seed) for scenario in scenarios],
                pbar_desc=None,
                max_exceptions=self.max_exceptions,
                max_concurrency=self.max_concurrency,
                timeout_s=self.timeout_s,
            )
            self.rollouts += len(prompts) * self.attempts * len(scenarios)
            return or_raise(await settle([self._scored(group) for group in gathered]))

    def _pending(self, prompts: Sequence[str], scenario: Scenario, *seed: object) -> TrajectoryGroup:
        members = [(prompt, attempt) for prompt in prompts for attempt in range(self.attempts)]
        random.Random(derive("trial order", scenario.id, *seed)).shuffle(members)
        return TrajectoryGroup(
            [
                self._attempt(prompt, scenario, derive("trial", scenario.id, attempt, *seed) >> 32)
                for prompt, attempt in members
            ],
            scenario_id=scenario.id,
            metadata=self.facts(scenario),
        )

    async def _attempt(self, prompt: str, scenario: Scenario, seed: int) -> Trajectory:
        trajectory = await self.rollout(replace(self.policy, system_prompt=prompt, seed=seed), scenario)
        return trajectory.noting_prompt(prompt)

    async def _scored(self, group: TrajectoryGroup) -> TrajectoryGroup:
        scores = await scores_or_reasons(FrozenSpec(self.scorer, self.spec), group)
        scored = apply_scores(group, scores, name=JUDGE)
        for name, guard in self.guards.items():
            said = await scores_or_reasons(FrozenSpec(guard, self.spec), group)
            for member, score in zip(scored, said, strict=True):
                if score.value is not None:
                    member.metrics[f"guard/{name}"] = score.value
        return scored


def seen(group: TrajectoryGroup, old: str, new: str) -> Seen | None:
    """The new prompt beside the old one in a scored group; None where either has no score."""
    before, after = _under(group, old), _under(group, new)
    if not before or not after:
        return None
    names = {name for t in group for name in t.metrics if name.startswith("guard/")}
    gaps = {name.removeprefix("guard/"): _gap(name, before, after) for name in sorted(names)}
    return Seen(
        scenario_id=group.scenario_id or "",
        difference=fmean(t.reward for t in after) - fmean(t.reward for t in before),
        words=(_words(before), _words(after)),
        guards={name: gap for name, gap in gaps.items() if gap is not None},
    )


def _under(group: TrajectoryGroup, prompt: str) -> list[Trajectory]:
    return [t for t in group.scored if t.is_under(prompt)]


def _gap(name: str, before: Sequence[Trajectory], after: Sequence[Trajectory]) -> float | None:
    old, new = ([float(t.metrics[name]) for t in side if name in t.metrics] for side in (before, after))
    return fmean(new) - fmean(old) if old and new else None


def _words(members: Sequence[Trajectory]) -> float:
    return fmean(len((last_answer(t.messages()) or "").split()) for t in members)
