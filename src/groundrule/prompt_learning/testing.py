"""Tests of candidate prompts beside their parent, look by look, until each is decided."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

from groundrule._util.seed import derive
from groundrule.algorithms.error_budget import looks_of
from groundrule.data.group import TrajectoryGroup
from groundrule.data.scenario import Scenario
from groundrule.prompt_learning.acceptance import Standing, looked
from groundrule.prompt_learning.settings import PromptSettings
from groundrule.prompt_learning.trial import Seen, Trial, seen


@dataclass(frozen=True)
class Candidate:
    """A prompt to be tested."""

    prompt: str
    level: float
    """Of the whole test; its looks divide it."""
    is_removal: bool = False


@dataclass
class Tested:
    """How the test of a candidate went."""

    candidate: Candidate
    standing: Standing = field(default_factory=Standing)
    data: list[Seen] = field(default_factory=list)

    @property
    def is_accepted(self) -> bool:
        """Shown to be better, or of a removal to be no worse."""
        return self.standing.outcome == "accepted"

    @property
    def differences(self) -> dict[str, float]:
        """By scenario."""
        return {one.scenario_id: one.difference for one in self.data}

    @property
    def mean(self) -> float:
        """The mean difference; 0 without data."""
        return fmean(self.differences.values()) if self.data else 0.0


@dataclass
class TestRun:
    """Some candidates side by side, and all groups that were judged for them."""

    __test__ = False

    tested: list[Tested]
    groups: list[TrajectoryGroup] = field(default_factory=list)


async def run_test(
    trial: Trial,
    parent: str,
    candidates: Sequence[Candidate],
    scenarios: Sequence[Scenario],
    settings: PromptSettings,
    *seed: object,
) -> TestRun:
    """Look after look, with the candidates that are still open, until each is decided."""
    order = list(scenarios)
    random.Random(derive("acceptance", *seed)).shuffle(order)
    looks = settings.looks_at(len(order))
    run = TestRun([Tested(candidate) for candidate in candidates])
    for number, (start, end) in enumerate(zip([0, *looks], looks, strict=False)):
        open_ones = [one for one in run.tested if one.standing.outcome == "open"]
        if not open_ones:
            break
        prompts = [parent, *(one.candidate.prompt for one in open_ones)]
        groups = await trial.groups(prompts, order[start:end], *seed)
        run.groups += groups
        for one in open_ones:
            found = (seen(group, parent, one.candidate.prompt) for group in groups)
            one.data += [saw for saw in found if saw is not None]
            one.standing = looked(
                one.standing,
                one.data,
                looks_of(one.candidate.level, looks)[number],
                is_last=number == len(looks) - 1,
                is_removal=one.candidate.is_removal,
                bounds=settings.bounds,
            )
    return run


def votes(data: Sequence[Seen]) -> tuple[int, int]:
    """On how many scenarios a prompt did better, and worse."""
    return sum(one.difference > 0 for one in data), sum(one.difference < 0 for one in data)
