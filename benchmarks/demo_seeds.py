"""Run the demonstration with several seeds and keep what it learned, good or bad.

    python benchmarks/demo_seeds.py --seeds 0 1 2 [--steps 8]
    python benchmarks/demo_seeds.py --collect runs/demo/support-seed0

Writes `results/demo-seed<N>.json` for each; `--collect` takes finished runs of this commit instead of
running. The held-out businesses are never trained on.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from _machine import RESULTS, publish
from _seeds import seeds_parser

CHECKED = ("judge", "facts", "grounded", "unsupported_numbers", "copied", "distinct", "words")


def run(seed: int, steps: int | None, scratch: Path) -> Path:
    folder = scratch / f"seed{seed}"
    shutil.rmtree(folder, ignore_errors=True)
    command = [sys.executable, "-m", "groundrule", "demo", "--seed", str(seed), "--run", str(folder)]
    subprocess.run(command + (["--steps", str(steps)] if steps else []), check=True)
    return folder


def keep(folder: Path) -> None:
    numbers = json.loads((folder / "demo.json").read_text())
    publish(f"demo-seed{numbers['seed']}", numbers)


def main() -> None:
    parser = seeds_parser(__doc__, "demo", [0, 1, 2])
    parser.add_argument("--steps", type=int, help="instead of the demonstration's own number")
    arguments = parser.parse_args()
    for folder in arguments.collect or []:
        keep(folder)
    for seed in [] if arguments.collect else arguments.seeds:
        keep(run(seed, arguments.steps, arguments.scratch))
    for path in sorted(RESULTS.glob("demo-seed*.json")):
        rows = json.loads(path.read_text())["rows"]
        said = ", ".join(f"{n} {rows[n]['before']:.3f} -> {rows[n]['after']:.3f}" for n in CHECKED)
        print(f"{path.stem}: {said}", file=sys.stderr)


if __name__ == "__main__":
    main()
