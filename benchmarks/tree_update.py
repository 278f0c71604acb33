"""Does the cost of an update follow unique tokens? Tool-use trajectories that branch at different turns.

    python benchmarks/tree_update.py [--quick]

A group has 8 trajectories of 8 turns: a prompt, then per turn a sampled answer and a tool's reply that is not
trained on. Members follow the first one up to the turn where they branch. Levels of sharing: no two alike, the
prompt alone, branches spread over all turns, all branches at the last turn. Each is updated with sharing; the
spread group also without (`TrainerSettings.share_prefixes=False`: the same gradient, every sequence computed by
itself). SmolLM2-135M with LoRA; runs alternate, and the first of each is not counted unless `--quick`.

The main line is the spread group without sharing over with it. `per_token_spread` is the largest deviation of a
level's CPU time per unique token from the mean of the levels.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from typing import Any

from _machine import publish, spread

from groundrule.algorithms.sequences import TokenSequence
from groundrule.models.load import load_model
from groundrule.training.batch import TrainingItem
from groundrule.training.lora_trainer import LoraTrainer, TrainerSettings
from groundrule.training.step_gradient import StepGradient

MEMBERS, TURNS = 8, 8
PROMPT, ANSWER, REPLY = 200, 24, 40
"""Tokens of a prompt, of a sampled answer and of a tool's reply."""

LEVELS: dict[str, Callable[[int], int]] = {
    "nothing": lambda member: -1,
    "prompt": lambda member: 0,
    "spread": lambda member: member,
    "late": lambda member: TURNS - 1,
}
"""How many turns a member shares with the first one; -1: not even the prompt."""


def group(shared_turns: Callable[[int], int]) -> list[TrainingItem]:
    """One group at a level of sharing; random tokens."""
    rng = random.Random(0)
    draw = lambda n: [rng.randrange(100, 49_000) for _ in range(n)]  # noqa: E731
    trunk, items = draw(PROMPT + TURNS * (ANSWER + REPLY)), []
    sampled = ((True,) * ANSWER + (False,) * REPLY) * TURNS
    for member in range(MEMBERS):
        turns = TURNS if member == 0 else shared_turns(member)
        kept = PROMPT + turns * (ANSWER + REPLY) if turns >= 0 else 0
        ids = (*trunk[:kept], *draw(len(trunk) - kept))
        sequence = TokenSequence(ids[:PROMPT], ids[PROMPT:], sampled, (0.0,) * len(sampled))
        items.append(TrainingItem(sequence, 1.0 if member % 2 else -1.0, has_logprobs=False))
    return items


def update(trainer: LoraTrainer, items: list[TrainingItem], settings: TrainerSettings) -> dict[str, float]:
    """One update; its CPU seconds, and how many tokens passed through the model."""
    gradient = StepGradient(trainer.model, items, settings)
    start = time.process_time()
    gradient.accumulate()
    trainer.optimizer.step()
    trainer.optimizer.zero_grad(set_to_none=True)
    return {"cpu_s": time.process_time() - start, **gradient.sizes}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one run of each, the first one")
    parser.add_argument("--runs", type=int, default=3, help="counted runs of each")
    options = parser.parse_args()
    runs = 1 if options.quick else options.runs + 1
    trainer = LoraTrainer(load_model("smollm2-135m", device="cpu"))
    apart = trainer.settings.model_copy(update={"share_prefixes": False})
    work = {name: (group(level), trainer.settings) for name, level in LEVELS.items()}
    work["spread, without sharing"] = (work["spread"][0], apart)
    update(trainer, group(LEVELS["late"])[:2], trainer.settings)  # Warms up threads and memory.
    found: dict[str, list[dict[str, float]]] = {name: [] for name in work}
    for _ in range(runs):
        for name, (items, settings) in work.items():
            found[name].append(update(trainer, items, settings))
    cases = [case(name, rows[1:] or rows) for name, rows in found.items()]
    for row in cases:
        print(
            f"{row['shared']:<24} {row['unique_tokens']:>5} unique of {row['all_tokens']} tokens: "
            f"{row['median']} s, {row['ms_per_unique_token']} ms a unique token",
            file=sys.stderr,
        )
    per_token = [row["ms_per_unique_token"] for row in cases]
    mean = sum(per_token) / len(per_token)
    ours, theirs = (next(c for c in cases if c["shared"] == n) for n in ("spread", "spread, without sharing"))
    publish(
        "tree_update",
        {
            "unit": "CPU seconds per update, median",
            "runs": len(found["spread"][1:] or found["spread"]),
            "ours": ours["median"],
            "theirs": theirs["median"],
            "ratio": round(theirs["median"] / ours["median"], 2),
            "token_ratio": round(theirs["unique_tokens"] / ours["unique_tokens"], 2),
            "per_token_spread": round(max(abs(value / mean - 1) for value in per_token), 3),
            "cases": cases,
        },
    )


def case(name: str, rows: list[dict[str, float]]) -> dict[str, Any]:
    seconds = spread([row["cpu_s"] for row in rows])
    unique = int(rows[0]["train/unique_tokens"])
    return {
        "shared": name,
        "unique_tokens": unique,
        "all_tokens": int(rows[0]["train/all_tokens"]),
        **seconds,
        "ms_per_unique_token": round(1000 * seconds["median"] / unique, 2),
    }


if __name__ == "__main__":
    main()
