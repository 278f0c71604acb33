"""What the steps of a run amount to: rewards, ties, cut answers, failures."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev

from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import is_choice
from groundrule.data.trajectory import Trajectory

SAME = 1e-9
"""Rewards closer than this are a tie."""

_EXPLANATION = re.compile(r"^\w[\w/ -]* explanation: ", re.DOTALL)


@dataclass(frozen=True)
class Step:
    """One step: its groups, and the rewards in them."""

    number: int
    groups: Sequence[TrajectoryGroup]

    @property
    def rewards(self) -> list[float]:
        """Of the scored answers."""
        return [t.reward for group in self.groups for t in group.scored]

    @property
    def mean(self) -> float | None:
        return fmean(self.rewards) if self.rewards else None

    @property
    def spread(self) -> float | None:
        """The standard deviation inside a group, averaged over the groups that have one."""
        spreads = [pstdev([t.reward for t in g.scored]) for g in self.groups if len(g.scored) > 1]
        return fmean(spreads) if spreads else None


@dataclass(frozen=True)
class Totals:
    """Counts over all steps."""

    groups: int
    tied: int
    """Groups of two or more scored answers that all got the same reward."""
    lonely: int
    """Groups with fewer than two scored answers: nothing to compare."""
    answers: int
    cut: int
    """Answers that ended at the token limit."""
    unscored: Counter[str]
    exceptions: Counter[str]


def totals_of(steps: Sequence[Step]) -> Totals:
    """Add up what kept a run from learning."""
    groups = [group for step in steps for group in step.groups]
    answers = [t for group in groups for t in group]
    return Totals(
        groups=len(groups),
        tied=sum(is_tied(group) for group in groups),
        lonely=sum(len(group.scored) < 2 for group in groups),
        answers=len(answers),
        cut=sum(was_cut(t) for t in answers),
        unscored=Counter(t.unscored for t in answers if t.unscored is not None),
        exceptions=Counter(str(e) for group in groups for e in group.exceptions),
    )


def is_tied(group: TrajectoryGroup) -> bool:
    """Whether all scored answers got the same reward, so that none is better than another."""
    rewards = [t.reward for t in group.scored]
    return len(rewards) > 1 and max(rewards) - min(rewards) < SAME


def was_cut(trajectory: Trajectory) -> bool:
    """Whether any turn ended at the token limit."""
    return any(is_choice(i) and i.finish_reason == "length" for i in trajectory.messages_and_choices)


def ranked(group: TrajectoryGroup) -> list[Trajectory]:
    """The best reward first; unscored answers last."""
    return sorted(group, key=lambda t: (t.unscored is not None, -t.reward))


def explanation_of(trajectory: Trajectory) -> str:
    """What the last scorer said about this answer."""
    found = [log for log in trajectory.logs if _EXPLANATION.match(log)]
    return _EXPLANATION.sub("", found[-1]).strip() if found else ""
