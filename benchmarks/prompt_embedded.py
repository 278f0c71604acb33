"""Learn a prompt for the embedded model by the embedded model, as examples/prompt.toml says, and keep what came of it.

    python benchmarks/prompt_embedded.py --seeds 0
    python benchmarks/prompt_embedded.py --collect runs/benchmarks/prompt/seed0

Writes `results/prompt_embedded-seed<N>.json`. The final test's scenarios decide nothing before.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from _machine import publish
from _seeds import seeds_parser

from groundrule.data.runs import Run

CONFIG = Path(__file__).parent.parent / "examples" / "prompt.toml"
SECONDS = "seconds.txt"
KEPT = ("step", "reward/mean", "prompt/contrasts", "prompt/complaints", "prompt/lessons", "prompt/rollouts")


def run(seed: int, scratch: Path) -> Path:
    folder = scratch / f"seed{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    started = time.monotonic()
    command = [sys.executable, "-m", "groundrule", "learn-prompt", str(CONFIG), "--seed", str(seed)]
    subprocess.run([*command, "--run", str(folder)], check=True)
    (folder / SECONDS).write_text(f"{time.monotonic() - started:.1f}\n")
    return folder


def keep(folder: Path) -> None:
    """What every round saw, proposed and decided, and the final test."""
    with Run.open(folder, read_only=True) as done:
        rounds = [{key: line.get(key) for key in KEPT} for line in done.metrics()]
        final = done.evaluations("final")
        seed = done.config["run"]["seed"]
    for one in rounds:
        record = json.loads((folder / "rounds" / f"step-{one['step']:06d}.json").read_text())
        one["tested"] = [
            {
                "edit": test["edit"],
                "outcome": test["outcome"],
                "reason": test["reason"],
                "looks": test["looks"],
            }
            for test in record["tested"]
        ]
        one["refused"] = [{"edit": each["edit"], "reason": each["reason"]} for each in record["refused"]]
    publish(
        f"prompt_embedded-seed{seed}",
        {
            "seed": seed,
            "seconds": float((folder / SECONDS).read_text()),
            "rounds": rounds,
            "prompt": (folder / "prompt.txt").read_text(),
            "final": final[-1] if final else None,
        },
    )


def main() -> None:
    parser = seeds_parser(__doc__, "prompt", [0])
    arguments = parser.parse_args()
    for folder in arguments.collect or [run(seed, arguments.scratch) for seed in arguments.seeds]:
        keep(folder)


if __name__ == "__main__":
    main()
