"""What `benchmarks/ppo_memory.py` measures and compares, with the tiny model."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from groundrule.models.lora import has_adapter
from tiny import tiny_model

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def child(monkeypatch):
    """The child program, which loads the tiny model."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    found = importlib.import_module("_ppo_memory_step")
    monkeypatch.setattr(found, "loaded", tiny_model)
    return found


@pytest.fixture
def parent(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    return importlib.import_module("ppo_memory")


def work(child):
    groups = [[[1, 40 + g, 41], [50, 51, 52], [60, 61, 62, 63]] for g in range(3)]
    return child.Work(groups, {"rank": 4, "alpha": 8})


@pytest.mark.parametrize("mode", ["ppo-shared", "ppo", "grpo-folded"])
def test_every_mode_makes_an_update(child, mode):
    step = child.MODES[mode](work(child))
    step(work(child).small())
    assert step(work(child)) == {"updated": 1.0}


def models_loaded(child, monkeypatch, mode):
    made = []
    monkeypatch.setattr(child, "loaded", lambda: made.append(tiny_model()) or made[-1])
    child.MODES[mode](work(child))
    return made


def test_four_models_carry_an_adapter_each_but_for_the_reference(child, monkeypatch):
    policy, reference, critic, judge = models_loaded(child, monkeypatch, "ppo")
    assert list(policy.network.peft_config) == ["default"]
    assert not hasattr(reference.network, "peft_config")
    assert list(critic.network.peft_config) == ["critic"]
    assert list(judge.network.peft_config) == ["reward"]


def test_a_shared_base_carries_all_three_adapters(child, monkeypatch):
    (model,) = models_loaded(child, monkeypatch, "ppo-shared")
    assert list(model.network.peft_config) == ["default", "critic", "reward"]


def test_grpo_folds_its_reference_into_one_model(child, monkeypatch):
    (model,) = models_loaded(child, monkeypatch, "grpo-folded")
    assert has_adapter(model)


def test_the_modes_are_the_plans_methods_and_the_childs(child, parent):
    assert list(parent.MODES) == list(child.MODES) == ["ppo-shared", "ppo", "grpo-folded"]


def test_all_modes_get_the_same_answers(parent):
    made = parent.work(96, 48)
    assert made == parent.work(96, 48)
    assert [len(ids) for ids in made["groups"][0]] == [96] + [48] * 8
    assert len(made["groups"]) == 4


def test_a_case_holds_the_plan_against_the_median_of_the_runs(parent):
    runs = [{"peak_mib": mib, "cpu_s": 1.0} for mib in (2000.0, 2600.0, 2500.0)]
    found = parent.case("grpo-folded", 512, 64, runs)
    assert found["peak_mib"] == {"median": 2500.0, "min": 2000.0, "max": 2600.0}
    assert found["ratio"] == round(found["planned_mib"] / 2500, 3)
    assert sum(found["planned_parts_mib"].values()) == pytest.approx(found["planned_mib"], abs=0.5)
