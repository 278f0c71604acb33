"""Run the chain of examples/constitution.toml and keep what came of it, good or bad.

    python benchmarks/constitution.py --teachers local simulated --seeds 0
    python benchmarks/constitution.py --collect runs/benchmarks/constitution/local-seed0

`local` is the example as it is: the embedded model criticises, revises and judges. `simulated` is the same chain with a
simulated critic and judge that knows the right answers and errs in a share of its replies; see
`_constitution_teacher.py`. It shows what the chain makes of good feedback, not that such feedback is to be had. Writes
`results/constitution-<teacher>-seed<N>.json`; `--collect` takes finished folders of this commit instead of running.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import sys
from functools import partial
from pathlib import Path
from typing import Any

import _constitution_teacher as simulated
from _machine import RESULTS, publish
from _seeds import seeds_parser

from groundrule.recipes.constitution.chain import run_constitution
from groundrule.recipes.constitution.config import RLHF, load_constitutional_config

CONFIG = Path(__file__).parent.parent / "examples" / "constitution.toml"
RULE = "rag"
TEACHERS: dict[str, dict[str, Any]] = {
    "local": {},
    "simulated": {
        "constitution.critic": simulated.NAME,
        "constitution.critic_params": {},
        "constitution.judge": simulated.NAME,
        "constitution.judge_params": {},
    },
}
"""What of the example's configuration is changed."""


def run(teacher: str, seed: int, scratch: Path) -> Path:
    folder = scratch / f"{teacher}-seed{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    changes = {**TEACHERS[teacher], "run.folder": str(folder), "run.seed": seed}
    config = load_constitutional_config(CONFIG, changes)
    asyncio.run(run_constitution(config, report=partial(print, file=sys.stderr, flush=True)))
    return folder


def keep(folder: Path) -> None:
    """What every stage gave, without where it stands."""
    stages = {
        p.stem: json.loads(p.read_text()) for p in (*folder.glob("*.json"), *(folder / RLHF).glob("*.json"))
    }
    results = {name: stage["result"] for name, stage in stages.items()}
    begun, revised, compared = (stages[name]["made_from"] for name in ("answers", "revisions", "preferences"))
    critic = revised["constitution.critic"] or f"local/{begun['policy.base_model']}"
    kind, seed = critic.partition("/")[0], begun["run.seed"]
    publish(
        f"constitution-{kind}-seed{seed}",
        {
            "teacher": kind,
            "error": simulated.error_of(critic) if kind == "simulated" else None,
            "critic": critic,
            "judge": compared["constitution.judge"] or critic,
            "seed": seed,
            "seconds": {name: result["seconds"] for name, result in results.items()},
            **{
                name: results[name]
                for name in ("answers", "revisions", "samples", "preferences", "evaluation")
            },
            "sft": {name: results["sft"][name] for name in ("examples", "losses")},
            "dpo": {"pairs": results["dpo"]["pairs"], "steps": len(results["dpo"]["steps"])},
        },
    )


def main() -> None:
    parser = seeds_parser(__doc__, "constitution", [0])
    parser.add_argument("--teachers", nargs="+", choices=list(TEACHERS), default=list(TEACHERS))
    arguments = parser.parse_args()
    simulated.register()
    for folder in arguments.collect or []:
        keep(folder)
    for teacher in [] if arguments.collect else arguments.teachers:
        for seed in arguments.seeds:
            keep(run(teacher, seed, arguments.scratch))
    for path in sorted(RESULTS.glob("constitution-*-seed*.json")):
        found = json.loads(path.read_text())["evaluation"]["policies"]
        said = (f"{name} {policy['judges'][RULE]['difference']}" for name, policy in found.items())
        print(f"{path.stem}: {RULE} {', '.join(said)}", file=sys.stderr)


if __name__ == "__main__":
    main()
