"""What `benchmarks/constitution.py` keeps of a chain, the table made of it, and what its simulated teacher knows."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from fakes import chat
from groundrule.rewards.attempt import attempt_of
from groundrule.rewards.constitution import Constitution
from groundrule.rewards.constitution.comparing import Comparer, comparing_judge
from groundrule.rewards.constitution.revising import Reviser

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def results(monkeypatch, tmp_path) -> Path:
    """Where results are written and read in this test."""
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(importlib.import_module("_machine"), "RESULTS", tmp_path / "results")
    monkeypatch.setattr(importlib.import_module("constitution"), "RESULTS", tmp_path / "results")
    return tmp_path / "results"


def benchmark(name: str) -> Any:
    return importlib.import_module(name)


def compared(first: float, second: float) -> dict[str, Any]:
    gap = {"value": second - first, "low": second - first - 0.1, "high": second - first + 0.1}
    return {"first": first, "second": second, "difference": gap}


def policy(second: float) -> dict[str, Any]:
    wins = {"value": 0.75, "low": 0.6, "high": 0.9}
    judge = {"role": "no part in the training", "unscored": 0, **compared(0.4, second), "win_rate": wins}
    return {"judges": {"rag": judge}, "checks": {"facts": {"scenarios": 24, **compared(0.0, second / 2)}}}


def stage(result: dict[str, Any], **made_from: Any) -> str:
    return json.dumps({"made_from": made_from, "result": {**result, "seconds": 90.0}})


def write_chain(folder: Path, critic: str | None, judge: str, seed: int) -> Path:
    """The stage files of a chain that ran through."""
    by_principle = {"short": {"comparisons": 3, "win_rate": 0.5, "certainty": 0.7, "orders_agree": 1.0},
                    "clear": {"comparisons": 1, "win_rate": 0.5, "certainty": 0.6, "orders_agree": 0.0}}  # fmt: skip
    files = {
        "answers": stage({"scenarios": 4, "answers": 4}, **{"run.seed": seed, "policy.base_model": "m"}),
        "revisions": stage(
            {"prompts": 4, "rounds": 8, "revisions": 7, "rows": 4}, **{"constitution.critic": critic}
        ),
        "sft": stage({"folder": str(folder / "sft"), "examples": 4, "losses": [3.0, 2.5]}),
        "samples": stage({"scenarios": 4, "answers": 12}),
        "preferences": stage(
            {"comparisons": 4, "ties": 1, "mass": 0.9, "principles": by_principle},
            **{"constitution.judge": judge},
        ),
        "evaluation": stage(
            {"scenarios": 24, "attempts": 1, "policies": {"revised": policy(0.55), "dpo": policy(0.6)}}
        ),
        "rlhf/rankings": stage({"rankings": 4}, **{"policy.base_model": str(folder / "sft")}),
        "rlhf/dpo": stage(
            {"folder": str(folder / "rlhf" / "dpo"), "pairs": 9, "steps": [{"step": 1}, {"step": 2}]}
        ),
    }
    (folder / "rlhf").mkdir(parents=True)
    for name, text in files.items():
        (folder / f"{name}.json").write_text(text)
    return folder


def test_what_came_of_a_chain_is_kept_without_where_it_stood(results, tmp_path):
    benchmark("constitution").keep(write_chain(tmp_path / "chain", None, "local/m", 3))
    text = (results / "constitution-local-seed3.json").read_text()
    kept = json.loads(text)

    assert str(tmp_path) not in text
    assert (kept["teacher"], kept["error"], kept["critic"], kept["judge"]) == (
        "local",
        None,
        "local/m",
        "local/m",
    )
    assert kept["sft"] == {"examples": 4, "losses": [3.0, 2.5]}
    assert kept["dpo"] == {"pairs": 9, "steps": 2}
    assert sum(kept["seconds"].values()) == 8 * 90.0


def test_a_simulated_teacher_is_called_so_and_its_error_kept(results, tmp_path):
    name = benchmark("_constitution_teacher").NAME
    benchmark("constitution").keep(write_chain(tmp_path / "chain", name, name, 0))
    kept = json.loads((results / "constitution-simulated-seed0.json").read_text())

    assert (kept["teacher"], kept["error"], kept["critic"]) == ("simulated", 0.1, "simulated/simulated-0.1")


def test_without_results_the_page_says_so(results):
    assert benchmark("_constitution_tables").runs() == "Not measured yet."
    assert benchmark("update_docs").table("constitution") == "Not measured yet."


def test_the_table_has_a_column_for_each_run(results, tmp_path):
    name = benchmark("_constitution_teacher").NAME
    benchmark("constitution").keep(write_chain(tmp_path / "a", None, "local/m", 0))
    benchmark("constitution").keep(write_chain(tmp_path / "b", name, name, 0))
    lines = benchmark("_constitution_tables").runs().splitlines()

    assert "they know the reference answers, and err in 10% of their replies" in lines[1]
    assert "| | `local/m`, seed 0 | simulated critic and judge, seed 0 |" in lines
    assert "| revisions of all rounds | 7 of 8 | 7 of 8 |" in lines
    assert "| both orders agree | 75% | 75% |" in lines
    cell = "0.40 -> 0.55 (+0.05 .. +0.25)"
    assert f"| **revised**, rag (no part in the training) | {cell} | {cell} |" in lines
    assert "| **DPO**, facts | 0.00 -> 0.30 (+0.20 .. +0.40) | 0.00 -> 0.30 (+0.20 .. +0.40) |" in lines
    assert "| minutes: answers, critiques and revisions | 3.0 | 3.0 |" in lines
    assert lines[-1] == "| `clear` | 1, 0.60, 0% | 1, 0.60, 0% |"


async def test_the_teacher_prefers_the_reference_to_every_question(results):
    known = benchmark("_constitution_teacher")
    judge = comparing_judge("x/y", client=known.SimulatedTeacher(known.better, known.quality, 0.0))
    comparer = Comparer(judge, Constitution.load("customer-support"))
    for scenario in known.scenarios():
        texts = (scenario.reference, "Please have a look at our website.")
        shown = [attempt_of([*scenario.messages(), *chat(text, system=None)[1:]]) for text in texts]
        assert [one.p for one in await comparer.compare(*shown)] == [pytest.approx(0.99)]


async def test_the_teacher_writes_references_of_training_questions_only(results):
    known = benchmark("_constitution_teacher")
    critic = comparing_judge("x/y", client=known.SimulatedTeacher(known.better, known.quality, 0.0))
    reviser = Reviser(critic, Constitution.load("customer-support"), rounds=1)
    for split, is_told in (("train", True), ("held-out", False)):
        scenario = next(s for s in known.scenarios() if s.split == split)
        revised = await reviser.revise(scenario.messages(), "Ask at the desk.")
        assert revised.rounds[0].revision == (scenario.reference if is_told else "Ask at the desk.")
