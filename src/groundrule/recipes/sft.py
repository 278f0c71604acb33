"""Supervised warm-up: a base model and conversations in, a model folder out that `policy.base_model` takes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from groundrule._util.files import write_atomic
from groundrule.data.trajectory import Trajectory
from groundrule.errors import ConfigError, TrainingError
from groundrule.models.load import load_model
from groundrule.models.merged import save_merged
from groundrule.training.sft import SftSettings, SftTrainer

FACTS = "sft.json"
"""What the folder was made from, beside the weights."""
_LINES = 12
"""About so many lines are reported, however many steps there are."""


def train_sft(
    examples: Sequence[Trajectory],
    base_model: str,
    folder: Path,
    *,
    settings: SftSettings | None = None,
    seed: int = 0,
    device: str | None = None,
    report: Callable[[str], None] = print,
) -> dict[str, Any]:
    """Train on the assistant turns of the examples, fold the adapter in, and write the model; what it was made from.

    Raises `ConfigError` where the folder exists, `TrainingError` where there are no examples.
    """
    if folder.exists():
        raise ConfigError(f"{folder} exists already; choose another folder, or remove it")
    if not examples:
        raise TrainingError("there are no examples to learn from")
    settings = settings or SftSettings()
    started = time.monotonic()
    model = load_model(base_model, device=device)
    trainer = SftTrainer(model, settings, seed=seed)
    steps = settings.epochs * -(-len(examples) // settings.examples_per_step)
    losses: list[float] = []
    for number, metrics in enumerate(trainer.fit(examples), start=1):
        losses.append(metrics["sft/loss"])
        if number in (1, steps) or number % max(1, steps // _LINES) == 0:
            report(
                f"warm-up step {number}/{steps}: loss {losses[-1]:.4f} over {metrics['sft/tokens']:.0f} tokens"
            )
    save_merged(model, folder)
    facts = {
        "base_model": base_model,
        "examples": len(examples),
        "seed": seed,
        "settings": settings.model_dump(mode="json"),
        "losses": losses,
        "seconds": round(time.monotonic() - started, 1),
    }
    write_atomic(folder / FACTS, json.dumps(facts, indent=2) + "\n")
    return facts
