"""Run the chain of examples/rlhf.toml with several seeds and keep what came of it, good or bad.

    python benchmarks/rlhf_seeds.py --seeds 0 1 2
    python benchmarks/rlhf_seeds.py --collect runs/benchmarks/rlhf/seed0

Writes `results/rlhf-seed<N>.json` for each; `--collect` takes finished folders of this commit instead of running. The
rule that ranks the answers is never shown to the reward model, and the held-out businesses are in no training.

The example compares PPO and DPO in one chain. For the time that a chain of PPO alone takes, the evaluation is made once
more without DPO, on the same answers, reward model and trained policy.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from _machine import RESULTS, publish
from _seeds import seeds_parser

CONFIG = Path(__file__).parent.parent / "examples" / "rlhf.toml"
RULE = "rag"


def run(seed: int, scratch: Path) -> Path:
    folder = scratch / f"seed{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    chain(CONFIG, seed, folder)
    without_dpo(folder, seed)
    return folder


def chain(config: Path, seed: int, folder: Path) -> None:
    """In a process of its own; stages that the folder has are not done again."""
    command = [sys.executable, "-m", "groundrule", "rlhf", str(config), "--seed", str(seed)]
    subprocess.run([*command, "--run", str(folder)], check=True)


def without_dpo(folder: Path, seed: int) -> None:
    """The chain of PPO alone, from the stages of the whole one: only its evaluation is new."""
    own = folder_without_dpo(folder)
    shutil.rmtree(own, ignore_errors=True)
    shutil.copytree(folder, own, ignore=shutil.ignore_patterns("evaluation*", "dpo*"))
    config = own / "ppo-alone.toml"
    config.write_text(re.sub(r"^\[dpo\]\n(?:[^\[].*\n|\n)*", "", CONFIG.read_text(), flags=re.MULTILINE))
    chain(config, seed, own)


def folder_without_dpo(folder: Path) -> Path:
    """Beside the whole one."""
    return folder.with_name(f"{folder.name}-ppo")


def keep(folder: Path) -> None:
    """What every stage gave, and what every step of PPO was like for the reward model and for the rule."""
    stages = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
    results = {name: stage["result"] for name, stage in stages.items()}
    seed = stages["answers"]["made_from"]["run.seed"]
    publish(
        f"rlhf-seed{seed}",
        {
            "seed": seed,
            "seconds": {name: result["seconds"] for name, result in results.items()}
            | seconds_without_dpo(folder),
            "answers": results["answers"],
            "rankings": results["rankings"],
            "reward_model": results["reward-model"]["evaluation"],
            "ppo": ppo_steps(folder / "ppo", results["ppo"]["steps"]),
            "evaluation": nameless(results["evaluation"]),
        },
    )


def seconds_without_dpo(folder: Path) -> dict[str, float]:
    """Of the evaluation of PPO alone, where it was made."""
    path = folder_without_dpo(folder) / "evaluation.json"
    return {"evaluation of ppo": json.loads(path.read_text())["result"]["seconds"]} if path.exists() else {}


def ppo_steps(folder: Path, steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Reward model, rule and KL of every step, means over its answers."""
    from groundrule.data.runs import Run

    with Run.open(folder, read_only=True) as done:
        rules = [
            [
                t.metrics[f"ruler/jury/{RULE}"]
                for group in done.groups(line["step"])
                for t in group.trajectories
            ]
            for line in steps
        ]
    return [{**line, RULE: sum(values) / len(values)} for line, values in zip(steps, rules, strict=True)]


def nameless(evaluation: dict[str, Any]) -> dict[str, Any]:
    """The reward model by what it is, whatever its folder was."""
    for policy in evaluation["policies"].values():
        policy["judges"] = {
            "reward model" if name.startswith("local/reward-model/") else name: row
            for name, row in policy["judges"].items()
        }
    return evaluation


def main() -> None:
    parser = seeds_parser(__doc__, "rlhf", [0, 1, 2])
    arguments = parser.parse_args()
    for folder in arguments.collect or []:
        keep(folder)
    for seed in [] if arguments.collect else arguments.seeds:
        keep(run(seed, arguments.scratch))
    for path in sorted(RESULTS.glob("rlhf-seed*.json")):
        found = json.loads(path.read_text())["evaluation"]["policies"]
        said = (f"{name} {policy['judges'][RULE]['difference']}" for name, policy in found.items())
        print(f"{path.stem}: {RULE} {', '.join(said)}", file=sys.stderr)


if __name__ == "__main__":
    main()
