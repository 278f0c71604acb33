"""Trainings with the tiny model: a step takes a fraction of a second."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groundrule._util import jsonl
from groundrule.models import pool
from groundrule.recipes.config import TrainingConfig, parse_config
from groundrule.recipes.config_file import Config, checked_config
from tiny import tiny_model

QUESTIONS = ["Refunds?", "Opening hours?", "Parking?", "Dogs?"]


def use_tiny_model(patch: pytest.MonkeyPatch) -> None:
    """Whatever model is asked for, the tiny one is loaded."""
    patch.setattr(pool, "load_model", lambda name, *, device=None: tiny_model())
    patch.setattr(pool, "_models", {})


def write_scenarios(path: Path) -> Path:
    """Four scenarios to train on and two held out, short enough for the tiny model."""
    train = [_scenario(f"train-{i}", q, "train") for i, q in enumerate(QUESTIONS, start=1)]
    held_out = [_scenario(f"held-out-{i}", q, "held-out") for i, q in enumerate(["Cats?", "Bikes?"], start=1)]
    jsonl.write(path, [*train, *held_out])
    return path


def tiny_config(
    scenario_file: Path, folder: Path, *, steps: int = 3, seed: int = 0, **sections: dict[str, Any]
) -> TrainingConfig:
    """A configuration that trains in a second; `sections` change single values."""
    train = {"steps": steps, "groups_per_step": 2, "group_size": 3, "learning_rate": 0.01, "lora_rank": 2}
    policy = {"base_model": "tiny", "max_tokens": 6, "temperature": 1.0}
    run = {"folder": str(folder), "seed": seed, "project": "tests", "name": "tiny"}
    return parse_config(
        {
            "scenarios": {"source": str(scenario_file), **sections.get("scenarios", {})},
            "policy": {**policy, **sections.get("policy", {})},
            "judge": {"model": "test/longest", **sections.get("judge", {})},
            "train": {**train, **sections.get("train", {})},
            "run": {**run, **sections.get("run", {})},
        }
    )


def write_rule(folder: Path) -> str:
    """A rule of the user's own that likes short answers, by name."""
    path = folder / "rules.py"
    path.write_text("def short(answer):\n    return 1 / (1 + len(answer.encode()))\n")
    return f"{path}:short"


def tiny_chain(
    kind: type[Config], defaults: dict[str, Any], changes: dict[str, dict[str, Any] | None]
) -> Config:
    """A chain's configuration; a section that is changed to None is left out."""
    data = {**defaults, "policy": {"base_model": "tiny", "max_tokens": 6, "temperature": 1.0}}
    for name, section in changes.items():
        data[name] = None if section is None else {**(data.get(name) or {}), **section}
    return checked_config(kind, {k: v for k, v in data.items() if v is not None})


def _scenario(name: str, question: str, split: str) -> dict[str, Any]:
    return {
        "id": name,
        "system": "Be brief.",
        "question": question,
        "context": "Thirty days.",
        "split": split,
    }
