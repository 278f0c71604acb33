"""Whoever ranks or compares, by name, and many groups at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from groundrule._util.aio import or_raise, settle
from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Scorer
from groundrule.data.score import Scores
from groundrule.rewards.functions import scorer_of
from groundrule.rewards.ruler import Ruler
from groundrule.rewards.scoring import scores_or_reasons

AT_ONCE = 16
"""Groups that a judge has before it at the same time."""
PASSES = 2
"""A judge that reads sees every group in both orders."""


def scorer_named(name: str, *, seed: int, base_model: str | None = None) -> Scorer:
    """A judge, a hand-written reward, a function or a verifier. Raises `ConfigError` for one that cannot be had.

    `base_model` is what a reward model stands on, where that has another name here.
    """
    found = scorer_of(name)
    if not isinstance(found, Ruler):
        return found
    params = {"base_model": base_model} if base_model else None
    return replace(found, passes=PASSES, seed=seed, extra_litellm_params=params)


async def scores_of(scorer: Scorer, groups: Sequence[TrajectoryGroup]) -> list[Scores]:
    """In the order of the groups; a wrong setting raises."""
    limit = asyncio.Semaphore(AT_ONCE)
    return or_raise(await settle([scores_or_reasons(scorer, group) for group in groups], limit=limit))
