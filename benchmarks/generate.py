"""Generation with shared prompts: our decoder against transformers' `generate` as TRL calls it.

    python benchmarks/generate.py [--quick] [--environment FOLDER]

32 requests in 4 groups of 8, each group with a prompt of 200 tokens, 48 tokens each (random ids, temperature 1, the
same LoRA adapter, folded in by us and unmerged with TRL). Both sides run in processes of their own with the same
number of threads and take turns; the first run of each is not counted. `decoding` is the whole less the same with one
token each.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from _machine import publish, spread
from _peers import HERE, TRL, Side, in_turn, peer_python

from groundrule.models import embedded
from groundrule.models.lora import LoraSettings

SHAPES = [(4, 8, 200, 48), (1, 8, 200, 48), (4, 8, 40, 48)]
"""Groups, answers in each, prompt tokens, sampled tokens. The first is the main line."""


def batch(shape: tuple[int, int, int, int], folder: Path) -> Path:
    groups, answers, length, tokens = shape
    rng = random.Random(0)
    prompts = [[rng.randrange(100, 49_000) for _ in range(length)] for _ in range(groups)]
    content = {
        "model": str(embedded.pull()),
        "adapter": str(folder / "adapter.safetensors"),
        "prompts": prompts,
        "answers": answers,
        "tokens": tokens,
        "learning_rate": 1e-4,
        "lora": LoraSettings().model_dump(mode="json"),
    }
    path = folder / "batch.json"
    path.write_text(json.dumps(content))
    return path


def measured(shape: tuple[int, int, int, int], python: Path, runs: int) -> dict[str, Any]:
    """Both sides taking turns on one shape."""
    with tempfile.TemporaryDirectory() as name:
        path = batch(shape, Path(name))
        # Ours first: it writes the adapter that both load.
        ours = Side([sys.executable, HERE / "_our_generate.py", path])
        found = in_turn(ours, Side([python, HERE / "_trl_generate.py", path]), runs + 1)
    groups, answers, length, tokens = shape
    case: dict[str, Any] = {"groups": groups, "answers": answers, "prompt": length, "tokens": tokens}
    for side, answered in found.items():
        counted = answered[1:]
        case[side] = {
            **spread([a["whole_cpu_s"] for a in counted]),
            "wall": spread([a["whole_wall_s"] for a in counted]),
            "reading": spread([a["first_cpu_s"] for a in counted]),
            "decoding": spread([a["whole_cpu_s"] - a["first_cpu_s"] for a in counted]),
            "peak_mb": round(answered[-1]["peak_mb"]),
        }
        case[side]["tokens_per_s"] = round(groups * answers * tokens / case[side]["wall"]["median"], 1)
    case["ratio"] = round(case["ours"]["tokens_per_s"] / case["theirs"]["tokens_per_s"], 2)
    case["cpu_ratio"] = round(case["theirs"]["median"] / case["ours"]["median"], 2)
    decoding = [case[side]["decoding"]["median"] for side in ("theirs", "ours")]
    case["decoding_ratio"] = round(decoding[0] / decoding[1], 2)
    return case


def line(case: dict[str, Any]) -> str:
    rates = ", ".join(f"{side} {case[side]['tokens_per_s']} tokens/s" for side in ("ours", "theirs"))
    return (
        f"{case['groups']} x {case['answers']}, prompt {case['prompt']}, {case['tokens']} tokens: {rates}, "
        f"{case['ratio']}x (CPU {case['cpu_ratio']}x, decoding alone {case['decoding_ratio']}x)"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--environment", type=Path, help="TRL's environment, if not in the user's cache")
    parser.add_argument("--quick", action="store_true", help="the main line only, one counted run a side")
    parser.add_argument("--runs", type=int, default=5, help="counted runs a side")
    options = parser.parse_args()
    python = peer_python(TRL, options.environment)
    runs = 1 if options.quick else options.runs
    cases = []
    for shape in SHAPES[:1] if options.quick else SHAPES:
        cases.append(measured(shape, python, runs))
        print(line(cases[-1]), file=sys.stderr)
    publish(
        "generate",
        {
            "against": TRL,
            "unit": "seconds a token, wall, prompts included, median",
            "runs": runs,
            "ours": round(1 / cases[0]["ours"]["tokens_per_s"], 5),
            "theirs": round(1 / cases[0]["theirs"]["tokens_per_s"], 5),
            "ratio": cases[0]["ratio"],
            "cases": cases,
        },
    )


if __name__ == "__main__":
    main()
