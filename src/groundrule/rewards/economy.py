"""Judging within a budget: what the next groups would cost, and how to ask for less.

A scorer that costs money can say how many calls a group takes and offer a cheaper version of itself (fewer
passes, then fewer jurors). When the cheapest is still too dear, a random part of the groups is judged and the
rest stays unscored, which is never a reward of 0.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, Self, runtime_checkable

from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Scorer
from groundrule.data.score import Score
from groundrule.llm.cost import Budget, Total

LEFT_OUT = "left out: the judge's budget for this step does not reach for every group"


@runtime_checkable
class Priced(Protocol):
    """A scorer whose groups cost calls."""

    async def score(self, group: TrajectoryGroup) -> list[Score]: ...

    def calls_for(self, members: int) -> int:
        """The most calls that a group of so many members takes, when none has to be repeated."""
        ...

    def cheaper(self) -> Self | None:
        """The same scorer for less; None when there is no such thing."""
        ...


def calls_of(scorer: Scorer, members: int) -> int:
    """What `calls_for` says; 0 for a scorer that says nothing."""
    return scorer.calls_for(members) if isinstance(scorer, Priced) else 0


def cheaper_of(scorer: Scorer) -> Scorer | None:
    """What `cheaper` gives; None for a scorer that has none."""
    return scorer.cheaper() if isinstance(scorer, Priced) else None


@dataclass(frozen=True)
class CallCost:
    """What one judge call takes on average."""

    tokens: float
    usd: float | None
    """None: the price is unknown, so only tokens and calls can be limited."""

    @classmethod
    def of(cls, total: Total) -> CallCost | None:
        """From what was spent so far; None while no call has been counted."""
        if not total.calls:
            return None
        tokens = (total.prompt_tokens + total.completion_tokens) / total.calls
        return cls(tokens, None if total.cost_usd is None else total.cost_usd / total.calls)


@dataclass(frozen=True)
class Purchase:
    """How the groups of a step are judged within a budget."""

    scorer: Priced
    groups: list[int]
    """The groups that are judged, by number; the others stay unscored."""
    rungs: int
    """How many times the scorer was made cheaper."""

    def metrics(self, of: int) -> dict[str, float]:
        """For the step's metrics; nothing where all went as configured."""
        if not self.rungs and len(self.groups) == of:
            return {}
        return {"judge/degraded": float(self.rungs), "judge/groups_left_out": float(of - len(self.groups))}


def purchase(
    scorer: Priced, members: Sequence[int], each: CallCost, left: Budget, rng: random.Random
) -> Purchase:
    """The best version of the scorer that `left` allows for groups of so many members.

    Fewer groups are judged only when the cheapest version is too dear for all. The estimate is an average, so
    a hard limit belongs on the ledger as well.
    """
    allowed = _calls_allowed(each, left)
    rungs = 0
    while _calls(scorer, members) > allowed and (next_best := scorer.cheaper()) is not None:
        scorer, rungs = next_best, rungs + 1
    order = rng.sample(range(len(members)), len(members))
    chosen: list[int] = []
    for index in order:
        calls = scorer.calls_for(members[index])
        if calls <= allowed:
            chosen.append(index)
            allowed -= calls
    return Purchase(scorer, sorted(chosen), rungs)


def _calls(scorer: Priced, members: Sequence[int]) -> int:
    return sum(scorer.calls_for(n) for n in members)


def _calls_allowed(each: CallCost, left: Budget) -> float:
    allowed = [float("inf") if left.calls is None else float(left.calls)]
    if left.tokens is not None and each.tokens > 0:
        allowed.append(left.tokens / each.tokens)
    if left.usd is not None and each.usd:
        allowed.append(left.usd / each.usd)
    return min(allowed)
