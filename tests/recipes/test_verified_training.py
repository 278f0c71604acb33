"""Trainings with a verifier: both signals in the run folder, every variant by name, several attempts verified."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groundrule._util import jsonl
from groundrule.algorithms.presets import PRESETS
from groundrule.data.runs import Run
from groundrule.errors import ConfigError
from groundrule.llm import ScriptedClient
from groundrule.recipes.config import TrainingConfig
from groundrule.recipes.judge_eval.history import read_history
from groundrule.recipes.judge_eval.trends import has_verifier
from groundrule.recipes.train_rl import train_rl
from groundrule.recipes.trainer_settings import settings_of
from groundrule.rewards import Ruler
from groundrule.rewards.compose import Composite, Part
from groundrule.rewards.functions import scorer_of
from tiny_training import tiny_config

LONGER = """
def is_long(answer):
    return float(len(answer) > 5)

def right(answer, reference):
    return float(reference in answer)
"""


@pytest.fixture
def training(tiny_base_model: None, tmp_path: Path) -> Callable[..., TrainingConfig]:
    """`training(judge={...}, train={...})`: scenarios with references, and `mine.py` with two verifiers."""
    columns = {"system": "Be brief.", "context": "Thirty days."}
    rows: list[dict[str, Any]] = [
        {"id": f"{split}-{i}", "question": f"Question {i}?", "reference": "e", "split": split, **columns}
        for split in ("train", "held-out")
        for i in range(4)
    ]
    jsonl.write(tmp_path / "scenarios.jsonl", rows)
    (tmp_path / "mine.py").write_text(LONGER)

    def made(**sections: dict[str, Any]) -> TrainingConfig:
        return tiny_config(tmp_path / "scenarios.jsonl", tmp_path / "run", steps=1, **sections)

    return made


def mine(tmp_path: Path, name: str) -> str:
    return f"{tmp_path / 'mine.py'}:{name}"


def run(config: TrainingConfig) -> list[str]:
    lines: list[str] = []
    asyncio.run(train_rl(config, report=lines.append))
    return lines


def last_metrics(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "metrics.jsonl").read_text().splitlines()[-1])
    return found


def test_a_run_by_judge_and_verifier_keeps_both_signals(training, tmp_path, judge_named):
    judge_named("long", "named_judges:longest")
    run(training(judge={"model": "long/any", "verifier": mine(tmp_path, "is_long"), "combine": "sum"}))
    members = [m for g in Run.open(tmp_path / "run", read_only=True).groups(1) for m in g]
    for member in members:
        assert member.metrics["reward/verifier"] in (0.0, 1.0)
        total = member.metrics["reward/verifier"] + member.metrics["reward/ruler"]
        assert member.reward == pytest.approx(total) == member.metrics["reward_score"]


def test_the_shares_of_both_signals_are_metrics_of_the_step(training, tmp_path, judge_named):
    judge_named("long", "named_judges:longest")
    run(training(judge={"model": "long/any", "verifier": mine(tmp_path, "is_long"), "combine": "sum"}))
    metrics = last_metrics(tmp_path / "run")
    assert metrics["judge/share/verifier"] + metrics["judge/share/ruler"] == pytest.approx(1.0)


def test_the_alarms_tell_verifier_and_judge_apart(training, tmp_path, judge_named):
    judge_named("long", "named_judges:longest")
    run(
        training(
            judge={"model": "long/any", "verifier": mine(tmp_path, "is_long"), "combine": "sum"},
            train={"group_size": 8},
        )
    )
    history = read_history(tmp_path / "run")
    assert has_verifier(history)
    assert all(0 <= score <= 1 for texts in history.texts for score in texts.scores)


def test_a_verifier_alone_needs_no_system_prompt(training, tmp_path):
    jsonl.write(
        tmp_path / "scenarios.jsonl",
        [
            {"id": "a", "question": "One?", "reference": "e"},
            {"id": "b", "question": "Two?", "reference": "e"},
        ],
    )
    run(training(judge={"verifier": mine(tmp_path, "right"), "combine": "verifier"}))
    assert Run.open(tmp_path / "run", read_only=True).step == 1


def test_several_attempts_at_held_out_scenarios_are_verified_before_and_after(training, tmp_path):
    lines = run(
        training(
            judge={"verifier": mine(tmp_path, "is_long"), "combine": "verifier"}, run={"evaluate_attempts": 4}
        )
    )
    for record in Run.open(tmp_path / "run", read_only=True).evaluations():
        attempts = record["attempts"]
        assert (attempts["attempts"], list(attempts["pass_at"])) == (4, ["1", "2", "4"])
        assert [len(s["answers"]) for s in attempts["scenarios"]] == [4, 4, 4, 4]
    assert sum("sampled: pass@1 " in line for line in lines) == 2


def test_attempts_are_the_same_in_another_run_of_the_seed(training, tmp_path):
    verified = {"verifier": mine(tmp_path, "is_long"), "combine": "verifier"}
    config = training(judge=verified, run={"evaluate_attempts": 4})
    run(config)
    again = training(judge=verified, run={"evaluate_attempts": 4, "folder": str(tmp_path / "again")})
    run(again)
    first, second = (Run.open(tmp_path / n, read_only=True).evaluations()[0] for n in ("run", "again"))
    assert first["attempts"] == second["attempts"]


def test_attempts_without_a_verifier_are_refused_before_anything_is_loaded(training):
    with pytest.raises(ConfigError, match=r"run.evaluate_attempts counts right answers"):
        run(training(run={"evaluate_attempts": 4}))


@pytest.mark.parametrize("preset", PRESETS)
def test_every_variant_trains_by_its_name(preset, training, tmp_path):
    run(
        training(
            judge={"verifier": mine(tmp_path, "is_long"), "combine": "verifier"},
            train={"preset": preset, "group_size": 8},
            scenarios={"held_out_limit": 0},
        )
    )
    metrics = last_metrics(tmp_path / "run")
    assert (metrics["train/updated"], metrics["train/trajectories"]) == (1.0, 16.0)


def test_a_variant_sets_advantage_and_loss(training):
    settings = settings_of(training(train={"preset": "gspo"}))
    assert (settings.advantage, settings.policy_loss.loss, settings.policy_loss.clip_high) == (
        "group_std",
        "gspo",
        4e-4,
    )


def test_what_the_configuration_says_wins_over_the_variant(training):
    settings = settings_of(training(train={"preset": "grpo", "advantage": "mean_only", "kl_coef": 0.0}))
    assert (settings.advantage, settings.policy_loss.kl_coef) == ("mean_only", 0.0)
    assert settings_of(training(train={"preset": "grpo"})).policy_loss.kl_coef == 0.04


def test_dr_grpo_divides_by_the_longest_answer_allowed(training):
    settings = settings_of(training(train={"preset": "dr_grpo"}, policy={"max_tokens": 33}))
    assert (settings.policy_loss.aggregation, settings.policy_loss.fixed_length) == ("fixed_length", 33)


def test_without_a_variant_nothing_changes_for_a_judge(training):
    settings = settings_of(training())
    assert (settings.advantage, settings.policy_loss.kl_coef, settings.whiten) == ("floored", 0.0, False)


def test_the_length_of_the_answers_is_a_metric_of_every_step(training, tmp_path):
    run(training(judge={"verifier": mine(tmp_path, "is_long"), "combine": "verifier"}))
    metrics = last_metrics(tmp_path / "run")
    assert 1 <= metrics["answers/tokens"] <= 6
    assert {"answers/self_check", "answers/truncated", "train/truncated"} <= metrics.keys()


def test_no_judge_is_shown_the_reference(training, tmp_path):
    judge = ScriptedClient(lambda request: "not a score")
    config = training(judge={"verifier": mine(tmp_path, "right")})
    for row in (rows := list(jsonl.read(tmp_path / "scenarios.jsonl"))):
        row[1]["reference"] = "zebra-19"
    jsonl.write(tmp_path / "scenarios.jsonl", [row for _, row in rows])
    both = Composite(
        [
            Part("verifier", scorer_of(mine(tmp_path, "right")), is_first=True),
            Part("ruler", Ruler("scripted", client=judge, cache=False)),
        ]
    )
    asyncio.run(train_rl(config, scorer=both, report=lambda line: None))
    shown = [str(message["content"]) for request in judge.requests for message in request.messages]
    assert shown
    assert not any("zebra-19" in text for text in shown)
