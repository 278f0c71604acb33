"""A training whose rewards come from a constitution, with the tiny model and a scripted judge of short answers."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from groundrule.data.messages import last_answer
from groundrule.data.runs import Run
from groundrule.llm import registry
from groundrule.recipes.train_rl import train_rl
from groundrule.rewards.neutral import neutral

PRINCIPLES = {"short", "friendly-and-plain"}
"""Of the constitution, those with the tag "form"."""


def judge(**more: Any) -> dict[str, Any]:
    params = {"judge": "test/judge", "principles": 2, "tags": ["form"]}
    return {"model": "constitution/customer-support", "params": params, **more}


def train(config: Any) -> list[str]:
    lines: list[str] = []
    asyncio.run(train_rl(config, report=lines.append))
    return lines


@pytest.fixture(scope="module")
def trained(tiny_trainings: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Run, list[str]]]:
    """A run of two steps, and what was reported. Read it only."""
    folder: Path = tmp_path_factory.mktemp("constitution") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(registry, "_TARGETS", {**registry._TARGETS, "test": "constitutions:named"})
        lines = train(tiny_trainings(folder, steps=2, judge=judge()))
        yield Run.open(folder, read_only=True), lines


def test_a_reward_is_how_probably_an_answer_wins_its_comparisons(trained: Any) -> None:
    group = trained[0].groups(1)[0]
    lengths = [len(neutral(last_answer(t.messages()) or "")) for t in group]

    for one, member in enumerate(group):
        wins = [1 / (1 + math.exp((lengths[one] - n) / 4)) for other, n in enumerate(lengths) if other != one]
        assert member.reward == pytest.approx(sum(wins) / len(wins))


def test_every_member_has_its_value_under_each_principle(trained: Any) -> None:
    for group in trained[0].groups(1):
        for member in group:
            said = {name.removeprefix("ruler/principle/"): v for name, v in member.metrics.items()
                    if name.startswith("ruler/principle/")}  # fmt: skip
            assert set(said) == PRINCIPLES
            assert member.reward == pytest.approx(sum(said.values()) / 2)


def test_the_steps_learn_from_it(trained: Any) -> None:
    lines = trained[0].metrics()

    assert [line["train/updated"] for line in lines] == [1.0, 1.0]
    assert [line["policy/ratio_max_error"] < 1e-4 for line in lines] == [True, True]
    assert [line["judge/orders_agree"] for line in lines] == [1.0, 1.0]


def test_what_it_will_take_is_said_beforehand(trained: Any) -> None:
    # 2 steps x 2 groups x 3 pairs x 2 principles x 2 orders.
    assert trained[1][0].startswith("judging the 2 steps to go: about 48 judge calls, ")
    assert trained[0].metrics()[0]["judge/calls"] == 12.0


def test_a_short_budget_asks_about_fewer_principles(
    tiny_training: Any, judge_named: Any, tmp_path: Path
) -> None:
    judge_named("test", "constitutions:named")
    held_out = {"held_out_limit": 0}
    config = tiny_training(
        tmp_path / "run", steps=1, scenarios=held_out, judge=judge(budget={"calls_per_step": 12})
    )
    train(config)
    [line] = Run.open(tmp_path / "run", read_only=True).metrics()

    assert (line["judge/degraded"], line["judge/groups_left_out"], line["judge/calls"]) == (1.0, 0.0, 6.0)
