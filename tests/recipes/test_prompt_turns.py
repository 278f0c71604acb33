"""Prompt, weights, prompt: each in its turn, each in its folder, with the tiny model."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from groundrule._util.digest import digest
from groundrule.data import Score, TrajectoryGroup
from groundrule.data.messages import last_answer
from groundrule.data.protocols import ChatReply, ChatRequest
from groundrule.data.runs import Run
from groundrule.errors import RunError
from groundrule.llm import registry
from groundrule.recipes import served_model
from groundrule.recipes.config_file import checked_config
from groundrule.recipes.prompt_learning.config import PromptConfig
from groundrule.recipes.prompt_learning.turns import learn_in_turns
from tiny import tiny_model
from tiny_training import use_tiny_model, write_scenarios

LESSON = "Use short words."


class Writer:
    """Proposes one lesson, whatever it is shown."""

    base_url = "test:"

    async def complete(self, request: ChatRequest) -> ChatReply:
        if "LESSON" in str(request.messages[1]["content"]).split('"LESSONS"')[0]:
            return ChatReply('{"quote": "", "verdict": "consistent"}')
        return ChatReply(json.dumps({"edits": [{"action": "add", "text": LESSON}]}))


class Varied:
    """Every answer lacks the same, more or less."""

    async def score(self, group: TrajectoryGroup) -> list[Score]:
        return [
            Score(
                value=len(set(last_answer(m.messages()) or "")) / 20,
                explanation="It uses long words everywhere.",
            )
            for m in group
        ]


def writer(name: str, params: dict[str, Any]) -> Any:
    return Writer()


def varied(name: str, params: dict[str, Any]) -> Any:
    return Varied()


@pytest.fixture
def config(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> PromptConfig:
    use_tiny_model(monkeypatch)
    monkeypatch.setattr(served_model, "load_model", lambda name, *, device=None: tiny_model())
    targets = {"test/writer": f"{__name__}:writer", "test/varied": f"{__name__}:varied"}
    monkeypatch.setattr(registry, "_TARGETS", {**registry._TARGETS, **targets})
    (tmp_path / "tiny").mkdir()
    return checked_config(
        PromptConfig,
        {
            "scenarios": {"source": str(write_scenarios(tmp_path / "scenarios.jsonl"))},
            "policy": {"model": f"local/{tmp_path / 'tiny'}", "max_tokens": 6, "temperature": 1.0},
            "judge": {"model": "test/varied"},
            "reflection": {"model": "test/writer"},
            "learn": {
                "turns": ["prompt", "weights", "prompt"],
                "rounds": 1,
                "groups_per_round": 2,
                "group_size": 3,
                "least_gap": 0.01,
                "looks": [1],
                "final": 1,
            },
            "train": {"steps": 1, "groups_per_step": 2, "group_size": 3, "lora_rank": 2},
            "run": {"folder": str(tmp_path / "turns")},
        },
    )


def test_each_turn_is_a_run_of_its_own_and_done_once(config, tmp_path):
    lines: list[str] = []
    results = asyncio.run(learn_in_turns(config, report=lines.append))
    again = asyncio.run(learn_in_turns(config, report=lines.append))

    assert list(results) == ["01-prompt", "02-weights", "03-prompt"]
    assert again == results
    assert (tmp_path / "turns" / "02-weights" / "model" / "model.safetensors").exists()
    with Run.open(tmp_path / "turns" / "02-weights", read_only=True) as run:
        hashes = {m.metadata["prompt"] for group in run.groups(1) for m in group}
    prompt = (tmp_path / "turns" / "01-prompt" / "prompt.txt").read_text().rstrip("\n")
    assert hashes == {digest(prompt)}


def test_lessons_that_the_weights_absorbed_are_tested_by_removal_before_the_second_prompt_turn(
    config, tmp_path
):
    begun = tmp_path / "begun.txt"
    begun.write_text("Be brief.\n\nLessons from earlier work:\n1. Name the days.\n")
    learn = config.learn.model_copy(update={"playbook": str(begun)})

    asyncio.run(learn_in_turns(config.model_copy(update={"learn": learn}), report=lambda line: None))

    first, last = (
        tmp_path / "turns" / name / "rounds" / "absorbed.json" for name in ("01-prompt", "03-prompt")
    )
    assert not first.exists()
    assert '"Name the days."' in last.read_text()


def test_another_setting_of_finished_turns_is_an_error_that_names_it(config):
    asyncio.run(learn_in_turns(config, report=lambda line: None))
    changed = config.model_copy(update={"train": config.train.model_copy(update={"learning_rate": 0.5})})

    with pytest.raises(RunError, match=r"train\.learning_rate"):
        asyncio.run(learn_in_turns(changed, report=lambda line: None))
