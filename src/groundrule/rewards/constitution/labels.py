"""Preferences by a constitution: soft labels that reward models and DPO learn from."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from groundrule._util.aio import settle
from groundrule._util.seed import derive
from groundrule.data.answers import Answer
from groundrule.data.preferences import Ranking
from groundrule.errors import BudgetError, JudgeError, LlmError
from groundrule.rewards.attempt import attempt_of
from groundrule.rewards.constitution.comparing import Comparer, Opinion, is_tie
from groundrule.rewards.constitution.pairings import pairings

SOURCE = "constitution"
AT_ONCE = 64
"""Pairs that a judge has before it at the same time."""


@dataclass(frozen=True)
class OfPrinciple:
    """What one principle decided."""

    comparisons: int
    win_rate: float
    """How probably the answer that was given first won, in the mean."""
    certainty: float
    """The mean of max(p, 1 - p): 0.5 where the principle told nothing apart."""
    orders_agree: float
    """The share of comparisons in which both orders favour the same answer."""


@dataclass(frozen=True)
class Labels:
    """The preferences, and what is behind them."""

    rankings: list[Ranking]
    """One of two answers for each pair; both in one tier where p is 0.5."""
    opinions: list[Opinion]
    failed: list[str]
    """Why pairs have no label, one reason each."""

    def by_principle(self) -> dict[str, OfPrinciple]:
        """By id, those that were drawn."""
        names = sorted({o.principle for o in self.opinions})
        return {name: _of([o for o in self.opinions if o.principle == name]) for name in names}

    @property
    def sampled(self) -> float:
        """The share of opinions for which letters had to be sampled."""
        return fmean(o.by == "samples" for o in self.opinions) if self.opinions else 0.0

    @property
    def mass(self) -> float | None:
        """The mean probability that the judge gave to the letters A and B together; None where all were sampled."""
        known = [o.mass for o in self.opinions if o.mass is not None]
        return fmean(known) if known else None


def _of(opinions: Sequence[Opinion]) -> OfPrinciple:
    return OfPrinciple(
        comparisons=len(opinions),
        win_rate=fmean(o.p for o in opinions),
        certainty=fmean(max(o.p, 1 - o.p) for o in opinions),
        orders_agree=fmean(o.orders_agree for o in opinions),
    )


async def label(rankings: Iterable[Ranking], comparer: Comparer) -> Labels:
    """A soft label for pairs of the answers of each ranking. Their order there is not shown to the judge.

    Pairs that cannot be compared are counted in `failed`. A budget that is used up and a wrong setting raise.
    """
    pairs = [pair for ranking in rankings for pair in _pairs(ranking, comparer.seed)]
    limit = asyncio.Semaphore(AT_ONCE)
    results = await settle([_opinions(*pair, comparer) for pair in pairs], limit=limit)
    made: list[Ranking] = []
    opinions: list[Opinion] = []
    failed: list[str] = []
    for (ranking, first, second), result in zip(pairs, results, strict=True):
        if isinstance(result, JudgeError | LlmError) and not isinstance(result, BudgetError):
            failed.append(f"{type(result).__name__}: {result}")
        elif isinstance(result, BaseException):
            raise result
        else:
            made.append(_labelled(ranking, first, second, result, comparer))
            opinions.extend(result)
    return Labels(made, opinions, failed)


def _pairs(ranking: Ranking, seed: int) -> list[tuple[Ranking, Answer, Answer]]:
    """Every two answers; of more than six a balanced part of them. In the order in which the answers were given."""
    count = len(ranking.answers)
    rng = random.Random(derive("label pairs", seed, ranking.prompt_key, *(a.key for a in ranking.answers)))
    chosen = sorted({(min(pair), max(pair)) for pair in pairings(count, rng)})
    return [(ranking, ranking.answers[i], ranking.answers[j]) for i, j in chosen]


async def _opinions(ranking: Ranking, first: Answer, second: Answer, comparer: Comparer) -> list[Opinion]:
    shown = [attempt_of([*ranking.prompt, *a.messages], tools=ranking.tools) for a in (first, second)]
    return await comparer.compare(*shown)


def _labelled(
    ranking: Ranking, first: Answer, second: Answer, opinions: Sequence[Opinion], comparer: Comparer
) -> Ranking:
    p = fmean(o.p for o in opinions)
    answers = [answer.model_copy(update={"score": None}) for answer in (first, second)]
    ids = [answer.id for answer in answers]
    is_level = is_tie(p)
    metadata: dict[str, Any] = {
        "constitution": comparer.constitution.name,
        "constitution_hash": comparer.constitution.content_hash,
        "principles": [o.principle for o in opinions],
        "p": p,
        "p_of_each_order": [list(o.orders) for o in opinions],
    }
    if comparer.think:
        metadata["rationales"] = [list(o.rationales) for o in opinions]
    return Ranking(
        prompt=ranking.prompt,
        answers=answers,
        order=[ids] if is_level else [[i] for i in (ids if p > 0.5 else ids[::-1])],
        certainty=1.0 if is_level else max(p, 1 - p),
        annotator=comparer.judge.model,
        source=SOURCE,
        scenario_id=ranking.scenario_id,
        tools=ranking.tools,
        metadata=metadata,
    )
