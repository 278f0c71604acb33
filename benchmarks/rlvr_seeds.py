"""Run the training by a verifier alone with several seeds and keep what it learned, good or bad.

    python benchmarks/rlvr_seeds.py --seeds 0 1 2 [--steps N] [--preset NAME]
    python benchmarks/rlvr_seeds.py --collect runs/demo-rlvr/sums-seed0

Writes `results/rlvr-seed<N>.json` for each; `--collect` takes finished runs of this commit instead of running. No pair
of numbers of the held-out problems is ever trained on.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from _machine import RESULTS, publish
from _seeds import seeds_parser


def run(seed: int, more: list[str], scratch: Path) -> Path:
    folder = scratch / f"seed{seed}"
    for old in (folder, folder.with_name(f"{folder.name}-warm-up")):
        shutil.rmtree(old, ignore_errors=True)
    command = [sys.executable, "-m", "groundrule", "demo-rlvr", "--seed", str(seed), "--run", str(folder)]
    subprocess.run([*command, *more], check=True)
    return folder


def keep(folder: Path) -> None:
    """The numbers of a run, with what every step's answers were like."""
    numbers = json.loads((folder / "rlvr.json").read_text())
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    names = ("reward/mean", "answers/tokens", "answers/self_check", "answers/truncated")
    numbers["by_step"] = {name: [round(line[name], 4) for line in lines] for name in names}
    publish(f"rlvr-seed{numbers['seed']}", numbers)


def main() -> None:
    parser = seeds_parser(__doc__, "rlvr", [0, 1, 2])
    parser.add_argument("--steps", help="instead of the demonstration's own number")
    parser.add_argument("--preset", help="another variant by name")
    arguments = parser.parse_args()
    for folder in arguments.collect or []:
        keep(folder)
    given = {"--steps": arguments.steps, "--preset": arguments.preset}
    more = [text for name, value in given.items() if value for text in (name, value)]
    for seed in [] if arguments.collect else arguments.seeds:
        keep(run(seed, more, arguments.scratch))
    for path in sorted(RESULTS.glob("rlvr-seed*.json")):
        rows = json.loads(path.read_text())["rows"]
        said = ", ".join(f"{name} {before:.3f} -> {after:.3f}" for name, (before, after) in rows.items())
        print(f"{path.stem}: {said}", file=sys.stderr)


if __name__ == "__main__":
    main()
