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
    shape = parent.Shape(4, 96, 48)
    assert shape.work() == shape.work()
    assert [len(ids) for ids in shape.work()["groups"][0]] == [96] + [48] * 8
    assert len(shape.work()["groups"]) == 4


def case(parent, allocator):
    runs = [{"peak_mib": mib, "cpu_s": 1.0} for mib in (2000.0, 2600.0, 2500.0)]
    return parent.case("grpo-folded", allocator, parent.Shape(1, 512, 64), runs)


def test_a_case_holds_the_plan_against_the_median_of_the_runs(parent):
    found = case(parent, "usual")
    assert found["peak_mib"] == {"median": 2500.0, "min": 2000.0, "max": 2600.0}
    assert found["ratio"] == round(found["planned_mib"] / 2500, 3)


def test_where_nothing_is_wasted_the_plan_is_without_what_lies_unused(parent):
    usual, mapped = case(parent, "usual"), case(parent, "mapped")
    unused = usual["planned_parts_mib"][parent.UNUSED]
    assert unused == 940.1  # 0.8 x 30 layers x 1016 tokens x 40428 bytes
    assert usual["planned_mib"] - mapped["planned_mib"] == pytest.approx(unused, abs=0.1)


def test_the_worst_ratio_may_be_on_either_side(parent):
    assert parent.worst([0.9, 1.05]) == 0.9
    assert parent.worst([0.96, 1.05]) == 1.05
