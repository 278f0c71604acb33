"""Weights are trained under a learned prompt: the agent reads all of it, the judge the spec alone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groundrule._util.digest import digest
from groundrule.data import Score, TrajectoryGroup
from groundrule.data.messages import system_prompt_of
from groundrule.data.runs import Run
from groundrule.errors import ConfigError, DataError, RunError
from groundrule.recipes.config import TrainingConfig
from groundrule.recipes.train_rl import train_rl

PROMPT = "Be brief.\n\nLessons from earlier work:\n1. Say thirty days."


class SpecJudge:
    """Remembers under which system prompts it was shown answers."""

    def __init__(self) -> None:
        self.shown: set[str] = set()

    async def score(self, group: TrajectoryGroup) -> list[Score]:
        self.shown |= {system_prompt_of(member.messages()) for member in group}
        return [Score(value=index / 10) for index, _ in enumerate(group)]


@pytest.fixture
def playbook(tmp_path: Path) -> Path:
    path = tmp_path / "prompt.txt"
    path.write_text(PROMPT + "\n")
    return path


def trained(config: TrainingConfig) -> SpecJudge:
    judge = SpecJudge()
    asyncio.run(train_rl(config, scorer=judge, report=lambda line: None))
    return judge


def test_the_agent_reads_the_lessons_and_the_judge_does_not(
    tiny_training: Callable[..., TrainingConfig], playbook: Path, tmp_path: Path
):
    config = tiny_training(tmp_path / "run", steps=1, policy={"playbook": str(playbook)})

    judge = trained(config)

    assert judge.shown == {"Be brief."}
    with Run.open(tmp_path / "run", read_only=True) as run:
        members = [member for group in run.groups(1) for member in group]
    assert {system_prompt_of(member.messages()) for member in members} == {PROMPT}
    assert {member.metadata["prompt"] for member in members} == {digest(PROMPT)}


def test_without_a_playbook_every_trajectory_still_names_its_prompt(
    tiny_training: Callable[..., TrainingConfig], tmp_path: Path
):
    trained(tiny_training(tmp_path / "run", steps=1))

    with Run.open(tmp_path / "run", read_only=True) as run:
        hashes = {member.metadata["prompt"] for group in run.groups(1) for member in group}
    assert hashes == {digest("Be brief.")}


def test_a_run_keeps_to_the_prompt_that_it_began_with(
    tiny_training: Callable[..., TrainingConfig], playbook: Path, tmp_path: Path
):
    policy = {"playbook": str(playbook)}
    trained(tiny_training(tmp_path / "run", steps=1, policy=policy))
    playbook.write_text(PROMPT + "\n2. Thank them.\n")

    with pytest.raises(RunError, match="was begun under another prompt"):
        trained(tiny_training(tmp_path / "run", steps=2, policy=policy))


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("Be rude.\n\nLessons from earlier work:\n1. Shout.\n", DataError, "is not the system prompt"),
        (None, ConfigError, "cannot be read"),
    ],
)
def test_a_playbook_that_does_not_fit_is_refused_before_anything_is_trained(
    tiny_training: Callable[..., TrainingConfig], tmp_path: Path, text: Any, error: type[Exception], said: str
):
    path = tmp_path / "other.txt"
    if text is not None:
        path.write_text(text)

    with pytest.raises(error, match=said):
        trained(tiny_training(tmp_path / "run", steps=1, policy={"playbook": str(path)}))
