"""What a run folder says step by step, in numbers small enough to keep: the ground that alarms stand on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import last_answer
from groundrule.data.runs import Run
from groundrule.data.trajectory import Trajectory
from groundrule.recipes.judge_eval.agreement import mean_of
from groundrule.recipes.judge_eval.faults import words_in

_HOLDOUT = "judge/holdout/"
_JUDGES = ("ruler", "reward/ruler")
"""What a judge's metrics on a trajectory begin with: alone, and beside a verifier."""


@dataclass(frozen=True)
class StepFacts:
    """One step; None where it says nothing about it. Shares are 0..1."""

    step: int
    answers: int
    reward: float | None
    """Mean of the judge's scores."""
    spreads: list[float]
    """Standard deviation of the scores in each group of two or more."""
    words: float | None
    cut: float | None
    """Share of answers that ended at their token limit."""
    distinct: float | None
    """Share of different answers in a group."""
    unscored: int
    flagged: int
    """Answers that speak to the grader."""
    verifier: float | None
    """Mean of the rewards that the rollouts gave before the judge did."""
    holdouts: dict[str, float]
    """Mean score of each juror that is held out."""


@dataclass(frozen=True)
class ScoredTexts:
    """A group's answers with the judge's scores, and the verifier's where there is one."""

    scenario: str
    texts: list[str]
    scores: list[float]
    verdicts: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class History:
    """A run as far as it is complete."""

    steps: list[StepFacts]
    texts: list[ScoredTexts]
    metrics: list[dict[str, Any]]
    evaluations: list[dict[str, Any]]


def read_history(folder: str | Path) -> History:
    """Read a run folder; changes nothing. Raises `RunError` for a folder that is none."""
    with Run.open(folder, read_only=True) as run:
        steps: list[StepFacts] = []
        texts: list[ScoredTexts] = []
        for step in run.trajectory_steps():
            groups = run.groups(step)
            steps.append(_facts(step, groups))
            texts += [_texts(step, number, group) for number, group in enumerate(groups)]
        return History(steps, [t for t in texts if len(t.texts) > 1], run.metrics(), run.evaluations())


def judge_score(member: Trajectory) -> float | None:
    """What the judge said; the reward itself where it kept nothing apart."""
    if member.unscored is not None:
        return None
    said = (member.metrics.get(name) for name in ("reward/ruler", "ruler_score"))
    return float(next((value for value in said if value is not None), member.reward))


def answer_in(member: Trajectory) -> str:
    """The text of the last assistant turn."""
    return last_answer(member.messages()) or ""


def _facts(step: int, groups: Sequence[TrajectoryGroup]) -> StepFacts:
    members = [member for group in groups for member in group]
    scores = [[s for m in group if (s := judge_score(m)) is not None] for group in groups]
    ends = list(_ends(members))
    return StepFacts(
        step=step,
        answers=len(members),
        reward=mean_of(score for several in scores for score in several),
        spreads=[pstdev(several) for several in scores if len(several) > 1],
        words=mean_of(float(words_in(m)) for m in members),
        cut=sum(end == "length" for end in ends) / len(ends) if ends else None,
        distinct=mean_of(_distinct(group) for group in groups),
        unscored=sum(m.unscored is not None for m in members),
        flagged=sum(bool(m.metrics.get(f"{under}/flagged")) for m in members for under in _JUDGES),
        verifier=mean_of(_verdict(m) for m in members),
        holdouts=_holdouts(groups),
    )


def _ends(members: Iterable[Trajectory]) -> Iterator[str]:
    """Why each sampled answer ended."""
    for member in members:
        for item in member.messages_and_choices:
            if hasattr(item, "finish_reason"):
                yield item.finish_reason


def _distinct(group: TrajectoryGroup) -> float | None:
    answers = [" ".join(answer_in(member).lower().split()) for member in group]
    return len(set(answers)) / len(answers) if len(answers) > 1 else None


def _verdict(member: Trajectory) -> float | None:
    value = member.metrics.get("reward/verifier", member.metrics.get("independent_reward"))
    return None if value is None else float(value)


def _holdouts(groups: Sequence[TrajectoryGroup]) -> dict[str, float]:
    said: dict[str, list[float]] = {}
    for group in groups:
        for name in (n.removeprefix(_HOLDOUT) for n in group.metrics if n.startswith(_HOLDOUT)):
            keys = [f"{under}/jury/{name}" for under in _JUDGES]
            said.setdefault(name, []).extend(
                float(m.metrics[k]) for m in group for k in keys if k in m.metrics
            )
    return {name: fmean(values) for name, values in said.items() if values}


def _texts(step: int, number: int, group: TrajectoryGroup) -> ScoredTexts:
    scored = [(m, s) for m in group if (s := judge_score(m)) is not None]
    verdicts = [v for m, _ in scored if (v := _verdict(m)) is not None]
    return ScoredTexts(
        group.scenario_id or f"step {step}, group {number}",
        [answer_in(m) for m, _ in scored],
        [s for _, s in scored],
        verdicts if len(verdicts) == len(scored) else [],
    )
