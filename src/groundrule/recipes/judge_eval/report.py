"""The whole measurement of a judge: ask it, compare, weigh."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from groundrule._util.seed import derive
from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Scorer
from groundrule.errors import ConfigError
from groundrule.llm.cost import Total
from groundrule.recipes.judge_eval.agreement import (
    by_area,
    gaps,
    mean_tau,
    not_above,
    order_flips,
    pair_accuracy,
)
from groundrule.recipes.judge_eval.faults import consistency, injection_wins, length_effect, twin_gaps
from groundrule.recipes.judge_eval.judged import JudgedGroup, Judging, failures_of, judge_all
from groundrule.recipes.judge_eval.verdict import Findings, Verdict, weigh
from groundrule.rewards.suites import KnownGroup


@dataclass(frozen=True)
class JudgeReport:
    """What a judge is worth on groups whose order is known."""

    found: Findings
    verdict: Verdict
    spent: Total
    scored: list[TrajectoryGroup]
    """The groups with the judge's scores as rewards."""

    def to_json(self) -> dict[str, Any]:
        """For machines: numbers, null where nothing could be measured or a price is unknown."""
        record = asdict(replace(self, scored=[]))
        del record["scored"]
        record["verdict"] = record.pop("verdict")
        record["found"]["failures"]["share"] = self.found.failures.share
        if self.found.length is not None:
            record["found"]["length"]["excess"] = self.found.length.excess
        record["spent"] = spent_per_group(self.spent, self.found.groups)
        return record


async def measure_judge(groups: Sequence[KnownGroup], scorer: Scorer, *, at_once: int = 8) -> JudgeReport:
    """Let the judge score groups of known order, and say what it is worth.

    Raises `ConfigError` for a judge that cannot be had; one that fails on a group leaves it unscored.
    """
    judging = await judge_all(groups, scorer, at_once=at_once)
    found = findings_of(judging)
    return JudgeReport(found, weigh(found), judging.spent, [g.scored_group() for g in judging.groups])


def findings_of(judging: Judging) -> Findings:
    """All numbers, from the scores alone."""
    judged = judging.groups
    return Findings(
        groups=len(judged),
        pairs=pair_accuracy(judged),
        tau_b=mean_tau(judged),
        areas=by_area(judged),
        order_flips=order_flips(judged),
        gaps=gaps(judged),
        consistency=consistency(judged),
        length=length_effect(judged),
        padded=not_above(judged, _padded),
        injection=not_above(judged, _injected),
        injection_wins=injection_wins(judged),
        twins=twin_gaps(judged),
        failures=failures_of(judged),
    )


def _padded(group: JudgedGroup) -> Sequence[tuple[int, int]]:
    return group.known.known.padded


def _injected(group: JudgedGroup) -> Sequence[tuple[int, int]]:
    return group.known.known.injected


def chosen(
    groups: Sequence[KnownGroup], *, area: str | None = None, limit: int | None = None, seed: int = 0
) -> list[KnownGroup]:
    """The groups of an area, and of these at most `limit`, drawn at random; in their own order.

    Raises `ConfigError` for an area that is not there, or a choice in which no answer is better than another.
    """
    kept = [group for group in groups if area in (None, group.area)]
    if not kept:
        known = ", ".join(sorted({group.area for group in groups if group.area})) or "none"
        raise ConfigError(f"no group has the area {area!r}; the areas here are: {known}")
    if limit is not None and limit < len(kept):
        drawn = random.Random(derive("judge-eval", seed)).sample(range(len(kept)), limit)
        kept = [kept[index] for index in sorted(drawn)]
    if not any(group.known.ordered for group in kept):
        raise ConfigError(
            f"in the {len(kept)} groups chosen no answer is better than another, so there is no order to measure; "
            "choose more groups or another area"
        )
    return kept


def spent_per_group(spent: Total, groups: int) -> dict[str, float | None]:
    """Calls, tokens and dollars, in all and a group; the dollars are None where a price is unknown."""
    cost = spent.cost_usd
    return {
        "calls": spent.calls,
        "cache_hits": spent.cache_hits,
        "failed_calls": spent.failed_calls,
        "prompt_tokens": spent.prompt_tokens,
        "completion_tokens": spent.completion_tokens,
        "cost_usd": cost,
        "calls_per_group": spent.calls / groups,
        "tokens_per_group": spent.tokens / groups,
        "cost_usd_per_group": None if cost is None else cost / groups,
    }
