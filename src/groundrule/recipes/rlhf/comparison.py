"""Answers of a trained policy beside those of the start, before judges and before plain counting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from groundrule.algorithms.versus import Pair, mean_of, versus
from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import last_answer
from groundrule.data.protocols import Scorer
from groundrule.data.scenario import Scenario
from groundrule.data.score import Scores
from groundrule.recipes.rlhf.scoring import scores_of
from groundrule.rewards.checks import check_answer

CHECKS = ("facts", "grounded", "copied", "words")
"""Counted without any judge, where scenarios have passages and facts."""


@dataclass(frozen=True)
class Comparing:
    """Who compares."""

    scorer: Scorer
    role: str
    """What part it had in the training."""


async def judged(
    judges: Mapping[str, Comparing], start: Sequence[TrajectoryGroup], trained: Sequence[TrajectoryGroup]
) -> dict[str, Any]:
    """Every judge is shown the answers two by two, one of each policy, without being told whose they are."""
    pairs = [_pairs(a, b) for a, b in zip(start, trained, strict=True)]
    found = {}
    for name, judge in judges.items():
        scored = iter(await scores_of(judge.scorer, [pair for row in pairs for pair in row]))
        given = [[next(scored) for _ in row] for row in pairs]
        result = versus([[both for s in row if (both := _both(s))] for row in given])
        unscored = sum(_both(scores) is None for row in given for scores in row)
        found[name] = {"role": judge.role, "unscored": unscored, **(asdict(result) if result else {})}
    return found


def checked(
    scenarios: Sequence[Scenario], start: Sequence[TrajectoryGroup], trained: Sequence[TrajectoryGroup]
) -> dict[str, Any]:
    """Each check over the scenarios that it applies to on both sides."""
    found = {}
    for name in CHECKS:
        sides = [
            [_mean(g, s, name) for g, s in zip(groups, scenarios, strict=True)] for groups in (start, trained)
        ]
        known = [(a, b) for a, b in zip(*sides, strict=True) if a is not None and b is not None]
        if known and any(scenario.context for scenario in scenarios):
            found[name] = {
                "scenarios": len(known),
                "first": fmean(a for a, _ in known),
                "second": fmean(b for _, b in known),
                "difference": asdict(mean_of([b - a for a, b in known])),
            }
    return found


def _pairs(start: TrajectoryGroup, trained: TrajectoryGroup) -> list[TrajectoryGroup]:
    """The i-th attempts of both as groups of two; the start's first."""
    return [
        start.with_members([a, b], exceptions=[])
        for a, b in zip(start.trajectories, trained.trajectories, strict=False)
    ]


def _both(scores: Scores) -> Pair | None:
    first, second = (score.value for score in scores)
    return None if first is None or second is None else (first, second)


def _mean(group: TrajectoryGroup, scenario: Scenario, name: str) -> float | None:
    texts = [last_answer(member.messages()) or "" for member in group]
    values = [getattr(check_answer(text, scenario), name) for text in texts]
    known = [float(value) for value in values if value is not None]
    return fmean(known) if known else None
