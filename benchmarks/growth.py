"""How cost grows: generation and update of SmolLM2-135M against group size, prompt length and number of scenarios.

    python benchmarks/growth.py [--quick]

One thing is changed at a time. Generation reads every prompt once and samples 32 tokens an answer; the update is one
optimizer step on what was sampled. CPU seconds, the least of several runs; the straight line fitted is seconds =
a + b x (unique tokens), where a prompt counts once for its group. Writes `results/growth.json` and `docs/growth.svg`.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import correlation, linear_regression
from typing import Any

from _machine import publish
from _our_update import moved_trainer

from groundrule.algorithms.sequences import TokenSequence
from groundrule.models.generate import generate
from groundrule.models.load import LanguageModel
from groundrule.models.sampling import SamplingRequest
from groundrule.models.snapshot import snapshot
from groundrule.training.batch import TrainingItem
from groundrule.training.lora_trainer import LoraTrainer, TrainerSettings
from groundrule.viewer.charts import HEIGHT, WIDTH, Series, drawing
from groundrule.viewer.markup import tag

TOKENS = 32
PICTURE = Path(__file__).parent.parent / "docs" / "growth.svg"
Shape = tuple[int, int, int]
"""Scenarios, answers to each, prompt tokens."""

LINES: dict[str, list[Shape]] = {
    "group size 1 to 64": [(1, g, 128) for g in (1, 2, 4, 8, 16, 32, 64)],
    "prompt 32 to 1024 tokens": [(1, 8, n) for n in (32, 128, 256, 512, 1024)],
    "1 to 16 scenarios": [(n, 4, 128) for n in (1, 2, 4, 8, 16)],
}


def unique_tokens(shape: Shape) -> int:
    scenarios, answers, prompt = shape
    return scenarios * (prompt + answers * TOKENS)


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    result = work()
    return time.process_time() - start, result


def measured(trainer: LoraTrainer, frozen: LanguageModel, shape: Shape, runs: int) -> dict[str, Any]:
    """Generation and update for one shape."""
    rng = random.Random(str(shape))
    scenarios, answers, length = shape
    prompts = [tuple(rng.randrange(100, 49_000) for _ in range(length)) for _ in range(scenarios)]
    requests = [
        SamplingRequest(prompt, max_tokens=TOKENS, temperature=1.0, seed=seed)
        for seed, prompt in enumerate(p for p in prompts for _ in range(answers))
    ]
    generating, updating = [], []
    for _ in range(runs):
        took, samples = seconds(lambda: generate(frozen, requests, max_rows=len(requests)))
        generating.append(took)
        items = [
            TrainingItem(
                TokenSequence(r.prompt_ids, tuple(s.token_ids), (True,) * TOKENS, tuple(s.logprobs)),
                advantage=1.0 if i % 2 else -1.0,
            )
            for i, (r, s) in enumerate(zip(requests, samples, strict=True))
        ]
        updating.append(seconds(lambda items=items: update(trainer, items))[0])
    return {
        "scenarios": scenarios,
        "answers": answers,
        "prompt": length,
        "unique_tokens": unique_tokens(shape),
        "generate_s": round(min(generating), 3),
        "update_s": round(min(updating), 3),
    }


def update(trainer: LoraTrainer, items: list[TrainingItem]) -> None:
    trainer.optimizer.zero_grad(set_to_none=True)
    trainer.accumulate(items)
    # No step: all shapes are measured with the same weights.


def fit(cases: list[dict[str, Any]], what: str) -> dict[str, float]:
    """The straight line over all shapes, and how much of the variance it explains."""
    x = [float(c["unique_tokens"]) for c in cases]
    y = [float(c[what]) for c in cases]
    line = linear_regression(x, y)
    return {
        "seconds_per_1000_tokens": round(1000 * line.slope, 3),
        "seconds_at_zero": round(line.intercept, 3),
        "r2": round(correlation(x, y) ** 2, 4),
    }


def picture(lines: dict[str, list[dict[str, Any]]]) -> str:
    """Both charts side by side, as a file of its own."""
    style = (
        "text{font:11px sans-serif;fill:#555}.title{font-weight:bold}.grid{stroke:#ddd}"
        ".line{fill:none;stroke-width:1.5}.one{stroke:#1f6feb;fill:#1f6feb}.two{stroke:#d1570a;fill:#d1570a}"
        ".three{stroke:#2d8a4e;fill:#2d8a4e}.line{fill:none}text.one,text.two,text.three{stroke:none}"
    )
    parts = [tag("style", style), tag("rect", width="100%", height="100%", fill="white")]
    for column, what in enumerate(("generate", "update")):
        series = [
            Series(name, [(float(c["unique_tokens"]), c[f"{what}_s"]) for c in cases], look)
            for (name, cases), look in zip(lines.items(), ("one", "two", "three"), strict=True)
        ]
        left = column * (WIDTH + 20)
        title = f"{what}: CPU seconds against unique tokens"
        parts.append(tag("text", title, x=left + 12, y=18, class_="title"))
        parts += [
            tag("text", s.name, x=left + 44 + 140 * i, y=36, class_=s.style) for i, s in enumerate(series)
        ]
        parts.append(drawing(title, series, x_name="tokens", x=left, y=44, width=WIDTH, height=HEIGHT))
    size = {"viewBox": f"0 0 {2 * WIDTH + 20} {HEIGHT + 50}"}
    return str(tag("svg", parts, xmlns="http://www.w3.org/2000/svg", **size))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="one run, and no shape above 700 unique tokens")
    parser.add_argument("--runs", type=int, default=3, help="runs of each shape, of which the least counts")
    options = parser.parse_args()
    quick, runs = options.quick, 1 if options.quick else options.runs
    trainer = moved_trainer(TrainerSettings())
    frozen = replace(snapshot(trainer.model), eos_ids=frozenset())
    measured(trainer, frozen, (1, 2, 32), 1)  # What is done once is done.
    lines: dict[str, list[dict[str, Any]]] = {}
    for name, shapes in LINES.items():
        lines[name] = []
        for shape in shapes:
            if not quick or unique_tokens(shape) <= 700:
                lines[name].append(measured(trainer, frozen, shape, runs))
                print(f"{name}: {lines[name][-1]}", file=sys.stderr)
    cases = [case for each in lines.values() for case in each]
    if not quick:
        PICTURE.write_text(picture(lines))
    publish(
        "growth",
        {
            "unit": "CPU seconds, least of the runs",
            "runs": runs,
            "tokens_an_answer": TOKENS,
            "update": fit(cases, "update_s"),
            "generate": fit(cases, "generate_s"),
            "lines": lines,
        },
    )


if __name__ == "__main__":
    main()
