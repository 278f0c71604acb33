"""The final test: the learned prompt beside the start, on scenarios that decided nothing before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from groundrule.algorithms.versus import mean_of
from groundrule.data.group import TrajectoryGroup
from groundrule.data.scenario import Scenario
from groundrule.prompt_learning.trial import Trial, seen


async def final_test(
    trial: Trial, start: str, learned: str, scenarios: Sequence[Scenario], *seed: object
) -> tuple[dict[str, Any], list[TrajectoryGroup]]:
    """The mean difference with its 95 % interval over scenarios, and the judged groups.

    Where both prompts are the same there is nothing to compare, and no answer is asked for.
    """
    if start == learned:
        return {"scenarios": len(scenarios), "same_prompt": True}, []
    groups = await trial.groups([start, learned], scenarios, "final", *seed)
    data = [saw for group in groups if (saw := seen(group, start, learned)) is not None]
    if not data:
        return {"scenarios": 0, "same_prompt": False}, groups
    guards = sorted({name for one in data for name in one.guards})
    return {
        "scenarios": len(data),
        "same_prompt": False,
        "difference": asdict(mean_of([one.difference for one in data])),
        "better": sum(one.difference > 0 for one in data),
        "worse": sum(one.difference < 0 for one in data),
        "words": [mean_of([one.words[side] for one in data]).value for side in (0, 1)],
        "guards": {
            name: asdict(mean_of([one.guards[name] for one in data if name in one.guards])) for name in guards
        },
    }, groups
