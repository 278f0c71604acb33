"""Groups that teach nothing are drawn again: the dynamic sampling of DAPO (Yu et al. 2025, section 3.2).

The paper draws until the batch is full; here the rounds are bounded, and what stays level after them is kept as it
is. Groups that were replaced are not trained on and not stored, so they are counted and their rewards are in
`reward/mean_drawn`: `reward/mean` alone would be of the groups that were chosen for their spread.
"""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable, Sequence
from statistics import fmean

from groundrule._util.seed import derive
from groundrule.algorithms.presets import PRESETS
from groundrule.data.group import TrajectoryGroup
from groundrule.data.scenario import Scenario
from groundrule.recipes.config import TrainSection
from groundrule.recipes.judging import judge_metrics

ROUNDS = 3
"""Where a preset asks for it and the configuration gives no number."""
_LEVEL = 1e-9

Metrics = dict[str, float | None]
Judged = tuple[list[TrajectoryGroup], Metrics]


def rounds_of(train: TrainSection) -> int:
    """How often level groups of a step are replaced, at most."""
    if train.resample_rounds is not None:
        return train.resample_rounds
    return ROUNDS if PRESETS[train.preset].resample_ties else 0


def is_level(group: TrajectoryGroup) -> bool:
    """Whether its rewards are all equal, or unknown, so that it gives no advantage."""
    known = [reward for reward in group.rewards if reward is not None]
    return not known or max(known) - min(known) <= _LEVEL


async def drawn_again(
    judged: Judged,
    rounds: int,
    gather: Callable[[list[Scenario]], Awaitable[Judged]],
    replacements: Callable[[int, int], list[Scenario]],
) -> Judged:
    """The groups of a step with level ones replaced, in place; `replacements(round, count)` gives other scenarios."""
    if not rounds:
        return judged
    groups, metrics = list(judged[0]), judged[1]
    drawn, replaced = list(groups), 0
    for number in range(1, rounds + 1):
        level = [i for i, group in enumerate(groups) if is_level(group)]
        others = replacements(number, len(level)) if level else []
        if not others:
            break
        fresh, metrics = await gather(others)
        drawn += fresh
        for i, group in zip(level, fresh, strict=False):
            groups[i] = group
            replaced += 1
    rewards = [reward for group in drawn for reward in group.rewards if reward is not None]
    seen: Metrics = {"train/groups_replaced": float(replaced)}
    if rewards:
        seen["reward/mean_drawn"] = fmean(rewards)
    return groups, {**metrics, **judge_metrics(groups), **seen}


def other_scenarios(
    scenarios: Sequence[Scenario], taken: set[str], count: int, *, seed: int, step: int, round_: int
) -> list[Scenario]:
    """Scenarios that the step has not met, fewer where there are not so many; `taken` grows by them."""
    free = [scenario for scenario in scenarios if scenario.id not in taken]
    chosen = random.Random(derive("drawn again", seed, step, round_)).sample(free, min(count, len(free)))
    taken.update(scenario.id for scenario in chosen)
    return chosen
