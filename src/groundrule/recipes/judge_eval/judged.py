"""The judge over known groups: its scores, and what they cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from groundrule._util.progress import settle_all
from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Scorer
from groundrule.data.score import Scores
from groundrule.llm.cost import Ledger, Total, current_ledger, use_ledger
from groundrule.rewards.apply import apply_scores
from groundrule.rewards.scoring import scores_or_reasons
from groundrule.rewards.suites import KnownGroup


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
    with use_ledger(Ledger(parent=current_ledger())) as ledger:
        scores = await settle_all(
            [scores_or_reasons(scorer, known.group) for known in groups], desc="judge", at_once=at_once
        )
    judged = [JudgedGroup(known, said) for known, said in zip(groups, scores, strict=True)]
    return Judging(judged, ledger.total())


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
