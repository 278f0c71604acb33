"""The demonstration of a verifier alone: its settings, its numbers, and that it goes on where it was."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from groundrule.recipes import sft
from groundrule.recipes.config import TrainingConfig
from groundrule.recipes.rlvr_demo import rlvr_config, run_rlvr_demo, summary
from tiny import tiny_model


def evaluation(step: int, rights: list[int], **more: Any) -> dict[str, Any]:
    """A record with so many right answers of four a problem."""
    scenarios = [
        {"scenario_id": f"p{i}", "attempts": 4, "verdicts": 4, "right": right}
        for i, right in enumerate(rights)
    ]
    attempts = {
        "attempts": 4,
        "pass_at": {"1": sum(rights) / len(rights) / 4, "4": 1.0},
        "majority": 0.5,
        "unscored": 0,
        "answers": {"answers/tokens": 8.0, "answers/self_check": 0.0},
        "scenarios": scenarios,
    }
    return {"step": step, "judge": {"mean": 0.25}, "attempts": {**attempts, **more}}


def test_before_and_after_stand_side_by_side():
    rows = summary(evaluation(0, [1, 0]), evaluation(9, [3, 2]))["rows"]
    assert rows == {
        "pass@1": [0.125, 0.625],
        "pass@4": [1.0, 1.0],
        "maj@4": [0.5, 0.5],
        "greedy": [0.25, 0.25],
        "tokens per answer": [8.0, 8.0],
        "answers that check themselves": [0.0, 0.0],
    }


def test_the_interval_is_of_the_difference_problem_by_problem():
    assert summary(evaluation(0, [1, 0]), evaluation(9, [3, 2]))["pass@1_difference_ci95"] == [0.5, 0.5]


def test_a_problem_without_a_verdict_on_one_side_is_left_out_of_the_interval():
    after = evaluation(9, [3, 2])
    after["attempts"]["scenarios"][1]["verdicts"] = 0
    assert summary(evaluation(0, [1, 4]), after)["pass@1_difference_ci95"] == [0.5, 0.5]


def test_the_training_starts_from_the_warm_up_of_its_own_folder():
    config = rlvr_config(steps=3, seed=2, folder="runs/here")
    assert (config.policy.base_model, config.run.seed) == ("runs/here-warm-up", 2)
    assert (config.judge.verifier, config.judge.combine) == ("math", "verifier")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> TrainingConfig:
    """The demonstration with the tiny model, two held-out problems and groups of two."""
    monkeypatch.setattr(sft, "load_model", lambda name, *, device=None: tiny_model())
    config = rlvr_config(steps=1, seed=0, folder=str(tmp_path / "run"))
    train = config.train.model_copy(update={"groups_per_step": 1, "group_size": 2, "resample_rounds": 0})
    scenarios = config.scenarios.model_copy(update={"held_out_limit": 2})
    return config.model_copy(update={"train": train, "scenarios": scenarios})


def run(config: TrainingConfig) -> tuple[dict[str, Any], list[str]]:
    lines: list[str] = []
    return asyncio.run(run_rlvr_demo(config, lines.append)), lines


def test_it_warms_up_trains_and_keeps_its_numbers(small):
    numbers, lines = run(small)
    assert (numbers["problems"], numbers["attempts"], numbers["steps"]) == (2, 16, 1)
    assert list(numbers["rows"])[:6] == ["pass@1", "pass@2", "pass@4", "pass@8", "pass@16", "maj@16"]
    assert json.loads((small.folder / "rlvr.json").read_text()) == json.loads(json.dumps(numbers))
    assert sum(line.startswith("warm-up step") for line in lines) == 5


def test_a_finished_demonstration_is_neither_warmed_up_nor_trained_again(small):
    run(small)
    numbers, lines = run(small)
    assert (numbers["wall_s"], [line for line in lines if line.startswith(("warm-up", "step"))]) == (None, [])
