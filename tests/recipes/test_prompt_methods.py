"""The other ways to learn a prompt leave the same run folder."""

from __future__ import annotations

import json

import pytest

from groundrule.data.runs import Run
from groundrule.errors import ConfigError
from groundrule.prompt_learning.simulated import SPEC, SimulatedAgent, SimulatedJudge
from groundrule.recipes.config_file import checked_config
from groundrule.recipes.prompt_learning.config import PromptConfig
from groundrule.recipes.prompt_learning.history import read_history
from groundrule.recipes.prompt_learning.run import learn_prompt
from prompt_worlds import WORLD, reflector, write_tasks


def configured(tmp_path, **learn):
    return checked_config(
        PromptConfig,
        {
            "scenarios": {"source": str(write_tasks(tmp_path / "tasks.jsonl"))},
            "policy": {"model": "openai/simulated"},
            "learn": {"rounds": 2, "final": 8, **learn},
            "run": {"folder": str(tmp_path / "run")},
        },
    )


async def learned(config):
    lines = []
    parts = {"rollout": SimulatedAgent(WORLD), "scorer": SimulatedJudge(WORLD), "reflector": reflector()}
    folder = await learn_prompt(config, report=lines.append, **parts)
    return folder, lines


@pytest.mark.parametrize(
    ("learn", "steps", "how"),
    [({"method": "best-of-n"}, 2, "best of n"), ({"method": "gepa", "rollouts": 200}, 1, "gepa")],
)
async def test_a_run_ends_with_a_prompt_its_metrics_a_history_and_a_final_test(tmp_path, learn, steps, how):
    folder, lines = await learned(configured(tmp_path, **learn))
    head = read_history(folder).pool.head
    prompt = (folder / "prompt.txt").read_text()
    assert prompt == f"{head.playbook.below(SPEC)}\n" != f"{SPEC}\n"
    assert (head.how, head.gain > 0) == (how, True)
    with Run.open(folder, read_only=True) as run:
        metrics = run.metrics()
        assert len(metrics) == steps
        assert all(line["prompt/rollouts"] > 0 for line in metrics)
        assert run.groups(1)
        [final] = run.evaluations("final")
    assert final["difference"]["value"] > 0
    assert json.loads((folder / "rounds/step-000001.json").read_text())["round"] == 1
    assert lines[-1].startswith("final test: +")


@pytest.mark.parametrize("method", ["best-of-n", "gepa"])
async def test_a_run_that_is_done_is_left_as_it_is(tmp_path, method):
    config = configured(tmp_path, method=method, rollouts=60)
    folder, _ = await learned(config)
    before = (folder / "state.json").read_text()
    _, lines = await learned(config)
    assert ((folder / "state.json").read_text(), lines) == (before, [])


@pytest.mark.parametrize("more", [{"drop_absorbed": True}, {"turns": ["prompt", "weights"]}])
def test_removals_are_tested_by_lessons_alone(tmp_path, more):
    with pytest.raises(ConfigError, match="does not test lessons by their removal"):
        configured(tmp_path, method="gepa", **more)
