"""Ways to learn a prompt in a simulated world of known truth: how fast, how good, and what is kept that does not help.

    python benchmarks/prompt_learning.py --runs 200 [--methods lessons best-of-n gepa] [--quick]

A run is a world with five lessons that help and nine that do not (`groundrule.prompt_learning.simulated`): a noisy
agent, a noisy judge, and a writer that is right in 70 % of what it writes. All methods share scenarios, agent, judge,
writer and lint, and have 1,600 rollouts. A whole playbook that the simulated writer writes keeps every old lesson, as
one of a real model may not: this favours best-of-n and gepa. How `PromptLearner` goes on after a test was chosen in
other worlds, those of the seeds 1000 to 1079. Writes `results/prompt_learning.json` and `docs/prompt-learning.svg`;
`--quick` only prints.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median, stdev
from typing import Any

from _machine import publish
from _prompt_attack import ARMS, attack
from _prompt_methods import BUDGET, METHODS, Scene, Track
from _prompt_tables import picture

from groundrule.prompt_learning.simulated import HABITS
from groundrule.rewards.universal.rates import Rate

PICTURE = Path(__file__).parent.parent / "docs" / "prompt-learning.svg"
EVERY = 100
REACHED = 0.95
UNHELPFUL = ("useless", "harmful", "lowering")


async def run(method: str, seed: int) -> dict[str, Any]:
    """One run: what it shipped over time, and at the end of the budget."""
    scene, track = Scene(seed), Track()
    await METHODS[method](scene, track)
    world, best = scene.world, scene.world.best_value()
    prompts = [track.at(rollouts) for rollouts in range(0, BUDGET + 1, EVERY)]
    final = prompts[-1]
    reached = (since for since, prompt in track.shipped if world.value(prompt) >= REACHED * best)
    first = next(reached, None)
    return {
        "reached": first if first is not None and first <= BUDGET else None,
        "kept": {kind: _kept(final, kind) for kind in ("helpful", *UNHELPFUL)},
        "value": world.value(final) / best,
        "curve": [world.value(prompt) / best for prompt in prompts],
        "unhelpful": [any(_kept(prompt, kind) for kind in UNHELPFUL) for prompt in prompts],
        "rollouts": scene.agent.answers,
        "judged_groups": scene.judge.groups,
        "written": scene.writer.calls,
    }


def _kept(prompt: str, kind: str) -> int:
    return sum(habit.kind == kind and habit.lesson in prompt for habit in HABITS)


def summary(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of all runs of a method; a run that did not get there counts as later than all others."""
    reached = [math.inf if one["reached"] is None else one["reached"] for one in runs]
    middle = median(reached)
    return {
        "runs": len(runs),
        "reached": rate(sum(r < math.inf for r in reached), len(runs)),
        "rollouts_until_reached": {
            "median": None if middle == math.inf else middle,
            "mean_of_those": round(fmean([r for r in reached if r < math.inf] or [0.0]), 1),
        },
        "with_unhelpful": rate(sum(one["unhelpful"][-1] for one in runs), len(runs)),
        "with": {kind: rate(sum(one["kept"][kind] > 0 for one in runs), len(runs)) for kind in UNHELPFUL},
        "helpful_kept": mean([one["kept"]["helpful"] for one in runs]),
        "unhelpful_kept": mean([sum(one["kept"][kind] for kind in UNHELPFUL) for one in runs]),
        "value_over_best": mean([one["value"] for one in runs]),
        "least_value_over_best": round(min(one["value"] for one in runs), 4),
        "rollouts": mean([one["rollouts"] for one in runs]),
        "judged_groups": mean([one["judged_groups"] for one in runs]),
        "written": mean([one["written"] for one in runs]),
        "curve": [mean(column) for column in zip(*(one["curve"] for one in runs), strict=True)],
        "unhelpful_curve": [
            rate(sum(column), len(runs)) for column in zip(*(one["unhelpful"] for one in runs), strict=True)
        ],
    }


def mean(values: Sequence[float]) -> dict[str, Any]:
    """With its 95 % interval over runs."""
    middle = fmean(values)
    half = 1.96 * stdev(values) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return {"mean": round(middle, 4), "ci95": [round(middle - half, 4), round(middle + half, 4)]}


def rate(hits: int, of: int) -> dict[str, Any]:
    """With Wilson's 95 % interval."""
    low, high = Rate(hits, of).ci95 or (0.0, 1.0)
    return {"hits": hits, "of": of, "share": round(hits / of, 4), "ci95": [round(low, 4), round(high, 4)]}


def attacks(runs: int) -> dict[str, Any]:
    """The attack on the bar, with each fence taken away."""
    found: dict[str, Any] = {}
    for arm in ARMS:
        results = [asyncio.run(attack(seed, arm)) for seed in range(runs)]
        found[arm] = {
            "accepted": rate(sum(one["accepted"] for one in results), runs),
            "tests": sum(one["tested"] for one in results),
            "refused": sum(one["refused"] for one in results),
        }
        print(f"{arm}: {found[arm]}", file=sys.stderr)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=200, help="worlds, each with a seed of its own")
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--quick", action="store_true", help="ten runs, and nothing is written")
    given = parser.parse_args()
    runs = 10 if given.quick else given.runs
    methods: dict[str, Any] = {}
    for name in given.methods:
        started = time.process_time()
        methods[name] = summary([asyncio.run(run(name, seed)) for seed in range(runs)])
        methods[name]["cpu_s"] = round(time.process_time() - started, 1)
        print(f"{name}: {methods[name]['with_unhelpful']}, {methods[name]['cpu_s']} s", file=sys.stderr)
    result = {"runs": runs, "budget": BUDGET, "every": EVERY, "methods": methods, "attack": attacks(runs)}
    if given.quick:
        print(json.dumps(result))
        return
    PICTURE.write_text(picture(result))
    publish("prompt_learning", result)


if __name__ == "__main__":
    main()
