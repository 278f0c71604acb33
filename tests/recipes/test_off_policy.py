"""Answers that go on while a step trains: how old they may be, what is dropped, what a resumed run does."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from groundrule.backends.local import LocalBackend
from groundrule.data import Score, Trajectory, TrajectoryGroup
from groundrule.data.runs import Run
from groundrule.errors import ConfigError
from groundrule.recipes.off_policy import version_of
from groundrule.recipes.train_rl import train_rl
from groundrule.rollouts.answer import AnswerOnce


class ByLength:
    async def score(self, group: TrajectoryGroup) -> list[Score]:
        return [Score(value=len(t.messages()[-1]["content"] or "") % 7 / 7) for t in group]


def train(config: Any, **more: Any) -> list[str]:
    lines: list[str] = []
    asyncio.run(train_rl(config, scorer=ByLength(), report=lines.append, **more))
    return lines


def metric(folder: Path, name: str) -> list[float]:
    lines = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    return [line[name] for line in lines if name in line]


def stale(n: int, **more: Any) -> dict[str, Any]:
    return {"max_staleness": n, **more}


def groups_of(folder: Path) -> list[list[TrajectoryGroup]]:
    run = Run.open(folder)
    found = [run.groups(step) for step in run.trajectory_steps()]
    run.close()
    return found


def test_answers_of_an_earlier_policy_are_trained_on_and_their_age_is_logged(tiny_trainings, tmp_path):
    train(tiny_trainings(tmp_path / "run", steps=5, train=stale(2)))

    ages = metric(tmp_path / "run", "async/staleness_max")
    assert len(ages) == 5
    assert 0 < max(ages) <= 2


def test_every_group_is_at_most_as_old_as_allowed(tiny_trainings, tmp_path):
    train(tiny_trainings(tmp_path / "run", steps=5, train=stale(1)))

    for step, groups in enumerate(groups_of(tmp_path / "run"), start=1):
        assert all(step - 1 - version_of(group) <= 1 for group in groups)


def test_answers_go_on_while_a_step_trains(tiny_trainings, tmp_path, monkeypatch):
    asked: list[float] = []
    update = LocalBackend.train
    seen_during_update: list[int] = []

    async def watched(self: LocalBackend, *args: Any, **more: Any) -> Any:
        before = len(asked)
        for _ in range(200):
            if len(asked) > before:
                break
            await asyncio.sleep(0.01)
        seen_during_update.append(len(asked) - before)
        return await update(self, *args, **more)

    monkeypatch.setattr(LocalBackend, "train", watched)
    answer = AnswerOnce.__call__

    async def counted(self: AnswerOnce, policy: Any, scenario: Any) -> Trajectory:
        await asyncio.sleep(0.01)
        asked.append(0.0)
        return await answer(self, policy, scenario)

    monkeypatch.setattr(AnswerOnce, "__call__", counted)
    train(tiny_trainings(tmp_path / "run", steps=3, train=stale(1), scenarios={"held_out_limit": 0}))

    assert max(seen_during_update) > 0


def test_a_group_that_took_too_long_is_dropped_and_counted(tiny_trainings, tmp_path, monkeypatch):
    """The first scenario's answers come only once two steps are trained."""
    trained = SimpleNamespace(steps=0)
    update, answer = LocalBackend.train, AnswerOnce.__call__

    async def counted(self: LocalBackend, *args: Any, **more: Any) -> Any:
        result = await update(self, *args, **more)
        trained.steps += 1
        return result

    slow: list[int] = []

    async def late(self: AnswerOnce, policy: Any, scenario: Any) -> Trajectory:
        if len(slow) < 3:  # The three members of the first group.
            slow.append(1)
            found = await answer(self, policy, scenario)
            while trained.steps < 3:
                await asyncio.sleep(0.01)
            return found
        return await answer(self, policy, scenario)

    monkeypatch.setattr(LocalBackend, "train", counted)
    monkeypatch.setattr(AnswerOnce, "__call__", late)
    train(tiny_trainings(tmp_path / "run", steps=5, train=stale(1), scenarios={"held_out_limit": 0}))

    assert sum(metric(tmp_path / "run", "async/dropped_stale")) == 1


def test_no_draw_is_trained_on_twice_after_an_interruption(tiny_trainings, tmp_path):
    train(tiny_trainings(tmp_path / "run", steps=2, train=stale(1)))
    train(tiny_trainings(tmp_path / "run", steps=4, train=stale(1)))

    draws = [group.metadata["draw"] for groups in groups_of(tmp_path / "run") for group in groups]
    assert len(draws) == len(set(draws)) == 8


def test_an_error_of_an_answer_beside_a_step_stops_the_run(tiny_trainings, tmp_path, monkeypatch):
    async def broken(self: AnswerOnce, policy: Any, scenario: Any) -> Trajectory:
        raise RuntimeError("the agent fell over")

    monkeypatch.setattr(AnswerOnce, "__call__", broken)
    with pytest.raises(Exception, match="the agent fell over"):
        train(tiny_trainings(tmp_path / "run", train=stale(1), scenarios={"held_out_limit": 0}))


def test_the_loss_is_weighed_by_how_much_the_policy_has_moved(tiny_trainings, tmp_path):
    train(tiny_trainings(tmp_path / "run", steps=3, train=stale(1, importance="token")))

    means = metric(tmp_path / "run", "policy/importance_mean")
    assert means
    assert all(0 < mean <= 2 for mean in means)


def test_answers_of_the_newest_policy_are_not_weighed(tiny_trainings, tmp_path):
    train(tiny_trainings(tmp_path / "run", steps=1))

    assert "importance" not in (tmp_path / "run" / "metrics.jsonl").read_text()


def test_a_budget_for_each_step_is_refused_where_judging_belongs_to_no_step(tiny_trainings, tmp_path):
    config = tiny_trainings(tmp_path / "run", train=stale(1), judge={"budget": {"calls_per_step": 5}})

    with pytest.raises(ConfigError, match="limit the run instead"):
        train(config)
