"""A whole training step, from prompts to new weights: ours against TRL's.

    python benchmarks/train_step.py [--quick] [--environment FOLDER]

Generate, score by a reward that costs nothing, update: SmolLM2-135M with LoRA, 2 prompts with 8 answers of 48 tokens
each, temperature 1, conversations of about 130 tokens with a system prompt and a passage. Ours goes over HTTP through
the local endpoint and writes its checkpoint and record each step; TRL does neither. Both sides run in processes of
their own with the same number of threads and take turns; the first step of each is not counted.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from _machine import publish, spread
from _peers import HERE, TRL, Side, in_turn, peer_python

from groundrule.models import embedded
from groundrule.models.lora import LoraSettings
from groundrule.rollouts.scenarios import load_scenarios

GROUPS, ANSWERS, TOKENS = 2, 8, 48


def batch(folder: Path) -> Path:
    """Conversations of the built-in support questions."""
    conversations = [
        [
            {"role": "system", "content": scenario.system},
            {"role": "user", "content": f"{scenario.context}\n\n{scenario.question}"},
        ]
        for scenario in load_scenarios("support", split="train")[:32]
    ]
    content = {
        "model": str(embedded.pull()),
        "conversations": conversations,
        "groups": GROUPS,
        "answers": ANSWERS,
        "tokens": TOKENS,
        "temperature": 1.0,
        "learning_rate": 1e-4,
        "lora": LoraSettings().model_dump(mode="json"),
    }
    path = folder / "batch.json"
    path.write_text(json.dumps(content))
    return path


def measured(python: Path, runs: int) -> dict[str, Any]:
    """Both sides taking turns."""
    with tempfile.TemporaryDirectory() as name:
        path = batch(Path(name))
        ours = Side([sys.executable, HERE / "_our_step.py", path])
        found = in_turn(ours, Side([python, HERE / "_trl_step.py", path]), runs + 1)
    case: dict[str, Any] = {"groups": GROUPS, "answers": ANSWERS, "tokens": TOKENS}
    for side, answers in found.items():
        counted = answers[1:]
        case[side] = {
            **spread([a["cpu_s"] for a in counted]),
            "wall": spread([a["wall_s"] for a in counted]),
            "peak_mb": round(answers[-1]["peak_mb"]),
        }
    case["ratio"] = round(case["theirs"]["median"] / case["ours"]["median"], 2)
    case["wall_ratio"] = round(case["theirs"]["wall"]["median"] / case["ours"]["wall"]["median"], 2)
    case["memory_ratio"] = round(case["theirs"]["peak_mb"] / case["ours"]["peak_mb"], 2)
    return case


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--environment", type=Path, help="TRL's environment, if not in the user's cache")
    parser.add_argument("--quick", action="store_true", help="one counted step a side instead of five")
    parser.add_argument("--runs", type=int, default=5, help="counted runs a side")
    options = parser.parse_args()
    runs = 1 if options.quick else options.runs
    case = measured(peer_python(TRL, options.environment), runs)
    publish(
        "train_step",
        {
            "against": TRL,
            "unit": "CPU seconds a step, median",
            "runs": runs,
            "ours": case["ours"]["median"],
            "theirs": case["theirs"]["median"],
            "ratio": case["ratio"],
            "cases": [case],
        },
    )


if __name__ == "__main__":
    main()
