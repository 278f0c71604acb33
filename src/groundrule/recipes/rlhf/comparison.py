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
    judges: Mapping[str, Comparing],
    start: Sequence[TrajectoryGroup],
    policies: Mapping[str, Sequence[TrajectoryGroup]],
) -> dict[str, dict[str, Any]]:
    """What each judge says of each policy, by the names of both.

    A judge is shown all answers to a scenario at once, of the start and of every policy, without being told whose they
    are. Then the i-th answer of a policy stands against the i-th of the start.
    """
    sides = [start, *policies.values()]
    groups = [_together(groups) for groups in zip(*sides, strict=True)]
    found: dict[str, dict[str, Any]] = {name: {} for name in policies}
    for judge, comparing in judges.items():
        scored = await scores_of(comparing.scorer, groups)
        values = [_parted(s, row) for s, row in zip(scored, zip(*sides, strict=True), strict=True)]
        for place, name in enumerate(policies, start=1):
            pairs = [list(zip(row[0], row[place], strict=False)) for row in values]
            found[name][judge] = _row(comparing.role, pairs)
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


def _together(groups: Sequence[TrajectoryGroup]) -> TrajectoryGroup:
    """All answers to one scenario."""
    members = [member for group in groups for member in group.trajectories]
    return groups[0].with_members(members, exceptions=[])


def _parted(scores: Scores, groups: Sequence[TrajectoryGroup]) -> list[list[float | None]]:
    """The values of one scenario, by whose answers they are."""
    values = iter(score.value for score in scores)
    return [[next(values) for _ in group.trajectories] for group in groups]


def _row(role: str, pairs: Sequence[Sequence[tuple[float | None, float | None]]]) -> dict[str, Any]:
    known: list[list[Pair]] = [[(a, b) for a, b in row if a is not None and b is not None] for row in pairs]
    result = versus(known)
    unscored = sum(map(len, pairs)) - sum(map(len, known))
    return {"role": role, "unscored": unscored, **(asdict(result) if result else {})}


def _mean(group: TrajectoryGroup, scenario: Scenario, name: str) -> float | None:
    texts = [last_answer(member.messages()) or "" for member in group]
    values = [getattr(check_answer(text, scenario), name) for text in texts]
    known = [float(value) for value in values if value is not None]
    return fmean(known) if known else None
