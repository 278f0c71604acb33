"""The demonstration from end to end, with the tiny model and a judge that compares nothing."""

from __future__ import annotations

import asyncio
import json

import pytest

from groundrule.recipes.demo import demo_config, run_demo


@pytest.fixture
def config(tiny_training, tmp_path, judge_named):
    judge_named("long", "named_judges:longest")
    return tiny_training(tmp_path / "run", steps=1, judge={"model": "long/any"})


def run(config) -> dict:
    return asyncio.run(run_demo(config, lambda line: None))


def test_the_demonstration_compares_before_and_after(config):
    numbers = run(config)
    assert (numbers["steps"], numbers["questions"], sorted(numbers["rows"]["judge"])) == (
        1,
        2,
        ["after", "before", "difference_ci95", "pairs"],
    )


def test_the_numbers_are_kept_in_the_run_folder(config):
    numbers = run(config)
    [kept] = [p for p in config.folder.glob("*.json") if p.name not in ("config.json", "state.json")]
    assert json.loads(kept.read_text("utf-8")) == numbers


def test_the_same_answers_are_scored_under_three_system_prompts(config):
    specs = run(config)["spec_effect"]["specs"]
    assert [spec["name"] for spec in specs] == ["true", "neutral", "opposite"]


def test_the_order_of_the_four_answers_is_the_judges(config):
    specs = run(config)["spec_effect"]["specs"]
    assert specs[0]["order"] == ["wordy", "faithful", "invented", "evasive"]


def test_a_finished_demonstration_shows_the_same_numbers_again(config):
    first, second = run(config), run(config)
    assert {k: v for k, v in first.items() if k != "wall_s"} == {
        k: v for k, v in second.items() if k != "wall_s"
    }


def test_the_demonstration_is_offline():
    config = demo_config(steps=10, seed=3)
    assert (config.scenarios.source, config.policy.base_model, config.judge.model, config.run.seed) == (
        "support",
        "smollm2-135m",
        "local/likelihood",
        3,
    )


def test_each_seed_has_its_own_run_folder():
    assert demo_config(steps=10, seed=3).folder.as_posix() == "runs/demo/support-seed3"
