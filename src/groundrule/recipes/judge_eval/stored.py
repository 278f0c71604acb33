"""A stored run: alarms from its files alone, and, where a judge is named, what that one says of its groups."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from groundrule._util.seed import derive
from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Scorer
from groundrule.data.runs import Run
from groundrule.errors import RunError
from groundrule.llm.cost import Total
from groundrule.recipes.alarms import raise_alarms
from groundrule.recipes.judge_eval.agreement import Measure, mean_tau, pair_accuracy
from groundrule.recipes.judge_eval.alarm import Alarm
from groundrule.recipes.judge_eval.history import judge_score, read_history
from groundrule.recipes.judge_eval.judged import Failures, failures_of, judge_all
from groundrule.recipes.judge_eval.report import spent_per_group
from groundrule.rewards.suites import Known, KnownGroup

CLEAR = 0.05
"""Stored scores that differ by less order nothing."""


@dataclass(frozen=True)
class SecondOpinion:
    """How another judge, or the same once more, orders what a run has scored."""

    groups: int
    pairs: Measure
    """Of pairs whose stored scores differ clearly: the share that is ordered alike; chance is 0.5."""
    tau_b: Measure
    failures: Failures
    spent: Total
    scored: list[TrajectoryGroup]


@dataclass(frozen=True)
class RunReport:
    """What a run shows about the judge that trained it."""

    folder: str
    steps: int
    alarms: list[Alarm]
    second: SecondOpinion | None = None

    @property
    def raised(self) -> list[Alarm]:
        """The alarms that something set off."""
        return [alarm for alarm in self.alarms if alarm.is_raised]

    def to_json(self) -> dict[str, Any]:
        """For machines."""
        record: dict[str, Any] = {
            "run": self.folder,
            "steps": self.steps,
            "alarms": [asdict(alarm) for alarm in self.alarms],
            "second_opinion": None,
        }
        if self.second is not None:
            second = self.second
            record["second_opinion"] = {
                "groups": second.groups,
                "pairs": asdict(second.pairs),
                "tau_b": asdict(second.tau_b),
                "failures": {**asdict(second.failures), "share": second.failures.share},
                "spent": spent_per_group(second.spent, second.groups),
            }
        return record


async def examine_run(
    folder: str | Path, scorer: Scorer | None = None, *, limit: int = 20, seed: int = 0, at_once: int = 8
) -> RunReport:
    """Alarms of a run. With a scorer, at most `limit` of its groups are judged once more; nothing is changed.

    Raises `RunError` for a folder that is no run, or that holds nothing to judge again.
    """
    history = read_history(folder)
    report = RunReport(str(folder), len(history.steps), raise_alarms(history))
    if scorer is None:
        return report
    groups = _sample(folder, limit, seed)
    judging = await judge_all(groups, scorer, at_once=at_once)
    judged = judging.groups
    second = SecondOpinion(
        groups=len(judged),
        pairs=pair_accuracy(judged),
        tau_b=mean_tau(judged),
        failures=failures_of(judged),
        spent=judging.spent,
        scored=[group.scored_group() for group in judged],
    )
    return RunReport(report.folder, report.steps, report.alarms, second)


def _sample(folder: str | Path, limit: int, seed: int) -> list[KnownGroup]:
    """Groups of the run in which the stored scores order something, drawn at random, in their own order."""
    with Run.open(folder, read_only=True) as run:
        found = [
            KnownGroup(f"step {step}, {group.scenario_id or number}", group, known)
            for step in run.trajectory_steps()
            for number, group in enumerate(run.groups(step), start=1)
            if (known := _as_scored(group)).ordered
        ]
    if not found:
        raise RunError(
            f"{folder} has no group whose scores differ by {CLEAR} or more, so there is no order to compare"
        )
    drawn = random.Random(derive("second opinion", seed)).sample(range(len(found)), min(limit, len(found)))
    return [found[index] for index in sorted(drawn)]


def _as_scored(group: TrajectoryGroup) -> Known:
    """The stored scores taken for the known order."""
    places = tuple(judge_score(member) for member in group)
    return Known(places, ordered=tuple(_clear_pairs(places)))


def _clear_pairs(places: Sequence[float | None]) -> list[tuple[int, int]]:
    known = [(i, place) for i, place in enumerate(places) if place is not None]
    return [
        (i, j) if first > second else (j, i)
        for (i, first), (j, second) in combinations(known, 2)
        if abs(first - second) >= CLEAR
    ]
