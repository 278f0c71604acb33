"""Peak memory of one step of PPO and of GRPO on the same answers, and what `groundrule plan` says of it.

    python benchmarks/ppo_memory.py [--quick]

PPO with policy, reference, reward model and critic on one base; PPO with four models in memory; GRPO with the
reference folded into the policy. All make one update (PPO one of its critic too) of SmolLM2-135M with LoRA in float32
from the same random tokens. The peak is `ru_maxrss` of a process of its own after the step, less what it held when its
libraries were there and no model. Modes take turns. The plan is asked for an update alone (`decodes` false), and the
ratio is planned / measured.

The C library's allocator keeps room between tensors that it does not use, for which the plan has a row. It is therefore
measured a second time with every tensor in a mapping of its own, which wastes nothing, against the plan without that
row: what the models, their gradients and their activations need.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from _machine import publish, spread
from _peers import HERE, Side

from groundrule.algorithms.memory_plan import MemoryPlan, PlanSettings, memory_plan
from groundrule.models.shapes import EMBEDDED

MODES = {
    "ppo-shared": "PPO, four roles on one base",
    "ppo": "PPO, four models",
    "grpo-folded": "GRPO, the reference folded in",
}
"""By the plan's names."""
ALLOCATORS = {"usual": {}, "mapped": {"MALLOC_MMAP_THRESHOLD_": "65536"}}
"""What the environment says to glibc."""
UNUSED = "unused between tensors (CPU allocator)"
ANSWERS = 8
"""Of a group."""


@dataclass(frozen=True)
class Shape:
    """A step's answers."""

    groups: int
    prompt: int
    tokens: int
    """Of each answer."""

    def work(self) -> dict[str, Any]:
        """Random token ids: of each group the prompt and then its answers."""
        rng = random.Random(0)
        draw = lambda n: [rng.randrange(100, 49_000) for _ in range(n)]  # noqa: E731
        answers = range(ANSWERS)
        return {
            "groups": [[draw(self.prompt), *(draw(self.tokens) for _ in answers)] for _ in range(self.groups)]
        }

    def plan(self, mode: str) -> MemoryPlan:
        """Of an update of all answers together."""
        settings = PlanSettings(
            prompt_tokens=self.prompt,
            answer_tokens=self.tokens,
            group_size=ANSWERS,
            groups=self.groups,
            trajectories_per_update=self.groups * ANSWERS,
            decodes=False,
        )
        return memory_plan(EMBEDDED, mode, settings)


SHAPES = [Shape(4, 96, 48), Shape(2, 512, 64)]


def measured(mode: str, path: Path, allocator: str) -> dict[str, float]:
    """One step in a fresh process."""
    command = [sys.executable, HERE / "_ppo_memory_step.py", mode, path]
    with Side(command, ALLOCATORS[allocator]) as side:
        found = side.ask()
    if not found["updated"]:
        raise RuntimeError(f"{mode} moved nothing: its step was not the one that is to be measured")
    peak = found["peak_mb"] - found["before_mb"]
    print(f"{mode}, {allocator}: {peak:.0f} MiB, {found['cpu_s']:.1f} CPU s", file=sys.stderr)
    return {"peak_mib": peak, "cpu_s": found["cpu_s"]}


def case(mode: str, allocator: str, shape: Shape, runs: list[dict[str, float]]) -> dict[str, Any]:
    """What was measured of a mode on a shape beside what was planned for it."""
    parts = [p for p in shape.plan(mode).peak_parts if allocator == "usual" or p.name != UNUSED]
    planned, peak = sum(part.bytes for part in parts), spread([run["peak_mib"] for run in runs])
    return {
        "mode": mode,
        "about": MODES[mode],
        "allocator": allocator,
        **asdict(shape),
        "answers": ANSWERS,
        "peak_mib": peak,
        "peak_mib_runs": [round(run["peak_mib"], 1) for run in runs],
        "planned_bytes": planned,
        "planned_mib": round(planned / 2**20, 1),
        "planned_parts_mib": {part.name: round(part.bytes / 2**20, 1) for part in parts},
        "ratio": round(planned / 2**20 / peak["median"], 3),
        "cpu_s": spread([run["cpu_s"] for run in runs]),
    }


def cases(shape: Shape, runs: dict[str, int]) -> list[dict[str, Any]]:
    """All modes on one shape, taking turns; so many runs by allocator."""
    found = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "work.json"
        path.write_text(json.dumps(shape.work()))
        for allocator, count in runs.items():
            for _ in range(count):
                for mode in MODES:
                    found[allocator, mode].append(measured(mode, path, allocator))
    return [case(mode, allocator, shape, done) for (allocator, mode), done in found.items()]


def worst(ratios: Iterable[float]) -> float:
    """The one farthest from 1."""
    return max(ratios, key=lambda ratio: abs(ratio - 1))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--quick", action="store_true", help="one run of the short prompt, with the usual allocator"
    )
    parser.add_argument("--runs", type=int, default=3, help="processes a mode and shape")
    options = parser.parse_args()
    # Nothing is left to chance where nothing is wasted, so that one run is enough.
    runs, shapes = {"usual": options.runs, "mapped": 1}, SHAPES
    if options.quick:
        runs, shapes = {"usual": 1}, SHAPES[:1]
    all_cases = [each for shape in shapes for each in cases(shape, runs)]
    publish(
        "ppo_memory",
        {
            "model": EMBEDDED.name,
            "unit": "MiB at the peak, less what was held before a model was loaded",
            "runs": runs,
            "worst_ratio": {a: worst(c["ratio"] for c in all_cases if c["allocator"] == a) for a in runs},
            "cases": all_cases,
        },
    )


if __name__ == "__main__":
    main()
