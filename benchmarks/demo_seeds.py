"""Run the demonstration with several seeds and keep what it learned, good or bad.

    python benchmarks/demo_seeds.py --seeds 0 1 2 [--steps 10]

Writes `results/demo-seed<N>.json` for each. The held-out businesses are never trained on.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from _machine import RESULTS, publish

CHECKED = ("judge", "facts", "grounded", "unsupported_numbers", "copied", "distinct", "words")


def run(seed: int, steps: int | None, scratch: Path) -> dict:
    folder, out = scratch / f"seed{seed}", scratch / f"seed{seed}.json"
    shutil.rmtree(folder, ignore_errors=True)
    started = time.time()
    command = [sys.executable, "-m", "groundrule", "demo", "--seed", str(seed), "--run", str(folder)]
    command += ["--json", str(out)] + (["--steps", str(steps)] if steps else [])
    subprocess.run(command, check=True)
    return {**json.loads(out.read_text()), "wall_s": round(time.time() - started)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--steps", type=int, help="instead of the demonstration's own number")
    parser.add_argument("--scratch", type=Path, default=Path("runs/benchmarks/demo"))
    arguments = parser.parse_args()
    arguments.scratch.mkdir(parents=True, exist_ok=True)
    for seed in arguments.seeds:
        publish(f"demo-seed{seed}", run(seed, arguments.steps, arguments.scratch))
    for path in sorted(RESULTS.glob("demo-seed*.json")):
        rows = json.loads(path.read_text())["rows"]
        said = ", ".join(f"{n} {rows[n]['before']:.3f} -> {rows[n]['after']:.3f}" for n in CHECKED)
        print(f"{path.stem}: {said}", file=sys.stderr)


if __name__ == "__main__":
    main()
