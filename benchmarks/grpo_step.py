"""One GRPO update of SmolLM2-135M with LoRA: shared prompts computed once, against full sequences.

    python benchmarks/grpo_step.py --against trl [--quick] [--environment FOLDER]
    python benchmarks/grpo_step.py --against plain [--quick]

Both sides update the same adapter (same shape, same initial weights) of the same model from the same tokens with
the same clipped token-mean loss, AdamW and clipping, and from then on each its own. They run in processes of their
own with the same number of threads and take turns; the first update of each is not counted. Times are CPU seconds
of the process. Peak memory is `ru_maxrss` after the first update of a process that has loaded a model and done
nothing else; `above_loaded` is that less what the process held before it. TRL's side needs 16 GB.

`trl` is TRL 1.16.0's GRPOTrainer in an environment of its own (`_trl_update.py` says what is timed). `plain` runs
prompt + completion of every answer through the model in one batch, sends only completion positions through the
output layer, and calls backward once.
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

SHAPES = [(512, 8, 64, False), (96, 8, 48, False)]
"""Prompt tokens, answers, completion tokens, gradient checkpointing. The first is the main line."""
LEAN = (512, 8, 64, True)
ADVANTAGES = [1.3, -0.4, 0.2, -1.1, 0.9, 0.6, -0.7, 0.4]


def batch(prompt: int, answers: int, tokens: int, lean: bool, folder: Path) -> Path:
    """Random tokens and everything that both sides must agree on, as a file."""
    rng = random.Random(0)
    draw = lambda n: [rng.randrange(100, 49_000) for _ in range(n)]  # noqa: E731
    content = {
        "model": str(embedded.pull()),
        "adapter": str(folder / "adapter.safetensors"),
        "prompt": draw(prompt),
        "completions": [draw(tokens) for _ in range(answers)],
        "advantages": [ADVANTAGES[i % len(ADVANTAGES)] for i in range(answers)],
        "learning_rate": 1e-4,
        "lora": LoraSettings().model_dump(mode="json"),
        "gradient_checkpointing": lean,
    }
    path = folder / "batch.json"
    path.write_text(json.dumps(content))
    return path


def measured(shape: tuple[int, int, int, bool], their_command: list[str | Path], runs: int) -> dict[str, Any]:
    """Both sides taking turns on one shape."""
    prompt, answers, tokens, lean = shape
    with tempfile.TemporaryDirectory() as name:
        path = batch(*shape, Path(name))
        # Ours first: it writes the adapter that both start from.
        ours, theirs = Side([sys.executable, HERE / "_our_update.py", path]), Side([*their_command, path])
        answers_of = in_turn(ours, theirs, runs + 1)
    ready = {"ours": ours.ready, "theirs": theirs.ready}
    case: dict[str, Any] = {"prompt": prompt, "answers": answers, "tokens": tokens}
    case["gradient_checkpointing"] = lean
    for side, found in answers_of.items():
        peak, loaded = found[0]["peak_mb"], ready[side]["loaded_mb"]
        case[side] = {
            **spread([f["cpu_s"] for f in found[1:]]),
            "user": spread([f["user_s"] for f in found[1:]]),
            "wall": spread([f["wall_s"] for f in found[1:]]),
            "peak_mb": round(peak),
            "above_loaded_mb": round(peak - loaded),
        }
    case["ratio"] = round(case["theirs"]["median"] / case["ours"]["median"], 2)
    case["memory_ratio"] = round(case["theirs"]["peak_mb"] / case["ours"]["peak_mb"], 2)
    case["memory_above_loaded_ratio"] = round(
        case["theirs"]["above_loaded_mb"] / case["ours"]["above_loaded_mb"], 2
    )
    case["agreement"] = agreement(answers_of["ours"], answers_of["theirs"])
    return case


def agreement(ours: list[dict[str, Any]], theirs: list[dict[str, Any]]) -> dict[str, float]:
    """The largest difference over all updates: of losses, and of gradient norms relative to theirs."""
    pairs = list(zip(ours, theirs, strict=True))
    return {
        "loss": max(abs(a["loss"] - b["loss"]) for a, b in pairs),
        "grad_norm_relative": max(abs(a["grad_norm"] / b["grad_norm"] - 1) for a, b in pairs),
        "first_grad_norm": theirs[0]["grad_norm"],
    }


def line(case: dict[str, Any]) -> str:
    kind = ", checkpointing" if case["gradient_checkpointing"] else ""
    return (
        f"prompt {case['prompt']}, {case['answers']} x {case['tokens']}{kind}: "
        f"ours {case['ours']['median']} s, theirs {case['theirs']['median']} s, {case['ratio']}x; "
        f"peak {case['ours']['peak_mb']} / {case['theirs']['peak_mb']} MB, above the loaded model "
        f"{case['ours']['above_loaded_mb']} / {case['theirs']['above_loaded_mb']} MB; agreement {case['agreement']}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", choices=["trl", "plain"], default="trl")
    parser.add_argument("--environment", type=Path, help="TRL's environment, if not in the user's cache")
    parser.add_argument("--quick", action="store_true", help="one counted update a side instead of five")
    parser.add_argument("--runs", type=int, default=5, help="counted runs a side")
    options = parser.parse_args()
    if options.against == "trl":
        command: list[str | Path] = [peer_python(TRL, options.environment), HERE / "_trl_update.py"]
    else:
        command = [sys.executable, HERE / "_plain_update.py"]
    runs = 1 if options.quick else options.runs
    cases = []
    for shape in SHAPES if options.quick or options.against == "plain" else [*SHAPES, LEAN]:
        cases.append(measured(shape, command, runs))
        print(line(cases[-1]), file=sys.stderr)
    publish(
        f"grpo_step_{options.against}",
        {
            "against": TRL if options.against == "trl" else "plain full sequences",
            "unit": "CPU seconds per update, median",
            "runs": runs,
            "ours": cases[0]["ours"]["median"],
            "theirs": cases[0]["theirs"]["median"],
            "ratio": cases[0]["ratio"],
            "memory_ratio": cases[0]["memory_ratio"],
            "cases": cases,
        },
    )


if __name__ == "__main__":
    main()
