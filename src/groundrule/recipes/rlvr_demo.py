"""Reinforcement learning from a verifier alone: a model that hardly can becomes one that mostly can.

First a short warm-up, in which the embedded model sees how answers are written and nothing of the task; then GRPO with
rewards of 0 and 1 by `verify_math`, in the manner of DeepSeek-R1-Zero (2501.12948). Held-out problems are answered
several times before and after.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from groundrule._util.files import write_atomic
from groundrule.data.evaluation import right_rates
from groundrule.data.runs import Run
from groundrule.data.trajectory import Trajectory
from groundrule.models import embedded
from groundrule.recipes.config import TrainingConfig, parse_config
from groundrule.recipes.demo import bootstrap_interval
from groundrule.recipes.sft import FACTS, train_sft
from groundrule.recipes.train_rl import train_rl
from groundrule.rollouts.sums import one_digit_sums
from groundrule.training.sft import SftSettings

NUMBERS = "rlvr.json"
"""The file in the run folder that keeps the numbers of the table."""
ATTEMPTS = 16
HELD_OUT = 64
WARM_UP = SftSettings(learning_rate=5e-4)


def rlvr_config(*, steps: int, seed: int, folder: str | None = None, preset: str = "dapo") -> TrainingConfig:
    """The settings of the demonstration."""
    name = f"sums-seed{seed}"
    place = Path(folder or Path("runs") / "demo-rlvr" / name)
    return parse_config(
        {
            "scenarios": {"source": "sums", "held_out_limit": HELD_OUT},
            "policy": {
                "base_model": str(place.with_name(f"{place.name}-warm-up")),
                "max_tokens": 20,
                "temperature": 1.0,
            },
            "judge": {"verifier": "math", "combine": "verifier"},
            "train": {
                "preset": preset,
                "steps": steps,
                "groups_per_step": 8,
                "group_size": 16,
                "learning_rate": 3e-4,
                "resample_rounds": 0,  # Drawing level groups again would cost more time than it saves here.
            },
            "run": {
                "project": "demo-rlvr",
                "name": name,
                "seed": seed,
                "folder": str(place),
                "evaluate_attempts": ATTEMPTS,
            },
        }
    )


async def run_rlvr_demo(config: TrainingConfig, report: Callable[[str], None]) -> dict[str, Any]:
    """Warm up, train, evaluate; the numbers of the table, which are kept in the run folder too.

    `wall_s` is None for a run that was resumed.
    """
    started = None if (config.folder / "state.json").exists() else time.monotonic()
    warm = warm_up(config, report)
    train = config.train
    report(
        f"Training on sums by a verifier alone: {train.steps} steps of {train.groups_per_step} "
        f"problems x {train.group_size} answers, preset {train.preset}. Run folder: {config.folder}"
    )
    folder = await train_rl(config, report=report)
    with Run.open(folder) as run:
        before, after = run.evaluations()[0], run.evaluations()[-1]
    numbers = {**summary(before, after), "seed": config.run.seed, "preset": train.preset, "warm_up": warm}
    numbers["wall_s"] = None if started is None else round(time.monotonic() - started)
    write_atomic(folder / NUMBERS, json.dumps(numbers, indent=2) + "\n")
    return numbers


def warm_up(config: TrainingConfig, report: Callable[[str], None]) -> dict[str, Any]:
    """The model that training starts from, made once; what it was made from."""
    folder = Path(config.policy.base_model)
    if not (folder / FACTS).exists():
        examples = [
            Trajectory(messages_and_choices=messages) for messages in one_digit_sums(seed=config.run.seed)
        ]
        report(f"warm-up on {len(examples)} one-digit sums")
        train_sft(examples, embedded.NAME, folder, settings=WARM_UP, seed=config.run.seed, report=report)
    facts: dict[str, Any] = json.loads((folder / FACTS).read_text("utf-8"))
    return {name: facts[name] for name in ("base_model", "examples", "seconds")}


def summary(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Before and after: pass@k, the vote, greedy answers, and the interval of the difference in pass@1."""
    first, last = before["attempts"], after["attempts"]
    rates = [right_rates(record) for record in (first, last)]
    shared = [i for i in rates[0] if i in rates[1]]
    low, high = bootstrap_interval([rates[1][i] - rates[0][i] for i in shared])
    rows = {f"pass@{k}": [first["pass_at"][k], last["pass_at"][k]] for k in first["pass_at"]}
    rows[f"maj@{first['attempts']}"] = [first["majority"], last["majority"]]
    rows["greedy"] = [before["judge"]["mean"], after["judge"]["mean"]]
    rows["tokens per answer"] = [record["answers"].get("answers/tokens") for record in (first, last)]
    rows["answers that check themselves"] = [r["answers"].get("answers/self_check") for r in (first, last)]
    return {
        "steps": after["step"],
        "problems": len(first["scenarios"]),
        "attempts": first["attempts"],
        "unscored": [first["unscored"], last["unscored"]],
        "rows": rows,
        "pass@1_difference_ci95": [low, high],
    }
