"""The judge over known groups: its scores, and what they cost."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from groundrule._util.aio import settle
from groundrule._util.progress import progress_bar
from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Scorer
from groundrule.data.score import Score, Scores
from groundrule.errors import ConfigError, GroundRuleError
from groundrule.llm.cost import Ledger, Total, current_ledger, use_ledger
from groundrule.rewards.apply import apply_scores
from groundrule.rewards.suites import KnownGroup

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class JudgedGroup:
    """A known group and what the judge says of its members."""

    known: KnownGroup
    scores: Scores

    @property
    def values(self) -> list[float | None]:
        """Each member's score; None where there is none."""
        return [score.value for score in self.scores]

    @property
    def cluster(self) -> str:
        """What is drawn as one in a bootstrap: groups of a series hold the same answers."""
        return self.known.series or self.known.name

    def scored_group(self) -> TrajectoryGroup:
        """The group with these scores as rewards."""
        return apply_scores(self.known.group, self.scores, name="ruler")


@dataclass(frozen=True)
class Judging:
    """All groups judged, and what that took."""

    groups: list[JudgedGroup]
    spent: Total


async def judge_all(groups: Sequence[KnownGroup], scorer: Scorer, *, at_once: int) -> Judging:
    """Score every group. One that cannot be scored keeps the reason; a wrong setting raises `ConfigError`."""
    limit = asyncio.Semaphore(at_once)
    with use_ledger(Ledger(parent=current_ledger())) as ledger, progress_bar("judge", len(groups)) as bar:
        results = await settle(
            [scorer.score(known.group) for known in groups], limit=limit, on_each=lambda *_: bar.advance()
        )
    judged = [
        JudgedGroup(known, _scores(result, len(known.group)))
        for known, result in zip(groups, results, strict=True)
    ]
    return Judging(judged, ledger.total())


def _scores(result: list[Score] | BaseException, members: int) -> Scores:
    if isinstance(result, ConfigError):
        raise result
    if isinstance(result, BaseException):
        if not isinstance(result, GroundRuleError):
            logger.warning("the scorer broke on a group", exc_info=result)
        return Scores(Score.none(f"{type(result).__name__}: {result}") for _ in range(members))
    if len(result) != members:
        reason = f"the scorer gave {len(result)} scores for a group of {members} trajectories"
        return Scores(Score.none(reason) for _ in range(members))
    return result if isinstance(result, Scores) else Scores(result)


@dataclass(frozen=True)
class Failures:
    """Members that got no score."""

    members: int
    unscored: int
    groups: list[tuple[str, str]]
    """(group, reason) of each group with an unscored member; its most frequent reason."""

    @property
    def share(self) -> float:
        """0..1"""
        return self.unscored / self.members if self.members else 0.0


def failures_of(judged: Sequence[JudgedGroup]) -> Failures:
    """What was left without a score, and why."""
    reasons = [(group.known.name, Counter(s.reason for s in group.scores if s.reason)) for group in judged]
    return Failures(
        members=sum(len(group.scores) for group in judged),
        unscored=sum(count.total() for _, count in reasons),
        groups=[(name, str(count.most_common(1)[0][0])) for name, count in reasons if count],
    )
