"""Runs by a verifier: pass@k in the report, and nothing about passages that there were not."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from groundrule.data.runs import Run
from groundrule.viewer.report import write_report
from groundrule.viewer.verified import label_of, verified_changes

CHECKS = {"grounded": 0.0, "unsupported_numbers": 1, "copied": 0.0, "words": 3, "abstains": False}


def evaluated(step: int, rights: list[int], majority: float | None = 0.5) -> dict[str, Any]:
    """So many right answers of four to each problem."""
    answers = [
        {
            "scenario_id": f"p{i}",
            "question": "1 + 1?",
            "context": "",
            "answer": "2",
            "score": 1.0,
            "checks": CHECKS,
        }
        for i in range(len(rights))
    ]
    scenarios = [
        {"scenario_id": f"p{i}", "attempts": 4, "verdicts": 4, "right": right}
        for i, right in enumerate(rights)
    ]
    attempts = {
        "attempts": 4,
        "pass_at": {"1": sum(rights) / 4 / len(rights), "4": 0.75},
        "majority": majority,
        "scenarios": scenarios,
    }
    return {"step": step, "answers": answers, "judge": {"mean": 1.0}, "checks": CHECKS, "attempts": attempts}


def changes(before: dict[str, Any], after: dict[str, Any]) -> dict[str, tuple[float, float]]:
    return {name: (c.before, c.after) for name, c in verified_changes(before, after)}


def test_pass_at_k_and_the_vote_are_compared():
    assert changes(evaluated(0, [0, 2]), evaluated(3, [2, 4], majority=1.0)) == {
        "pass@1": (0.25, 0.75),
        "pass@4": (0.75, 0.75),
        "maj@4": (0.5, 1.0),
    }


def test_what_one_end_does_not_know_is_not_compared():
    assert list(changes(evaluated(0, [0, 2], majority=None), evaluated(3, [2, 4]))) == ["pass@1", "pass@4"]


def test_runs_without_attempts_have_no_such_measure():
    assert changes({"step": 0}, evaluated(3, [1])) == {}


def test_measures_are_said_in_words():
    assert label_of("pass@1") == "pass@1: a sampled answer is right"
    assert label_of("pass@8") == "pass@8: one of 8 is right"
    assert label_of("maj@8") == "maj@8: the result given most often is right"
    assert label_of("facts") is None


def test_the_report_of_a_verifier_names_it_and_no_judge_and_no_passage(tmp_path: Path):
    config = {"judge": {"verifier": "math", "combine": "verifier", "model": "local/likelihood"}}
    with Run.create(tmp_path / "run", config) as run:
        run.record_step(1, [], {})
        run.write_evaluation(0, "", evaluated(0, [0, 2, 1, 0, 1, 0]))
        run.write_evaluation(1, "", evaluated(1, [2, 4, 3, 4, 4, 1]))
    page = write_report(tmp_path / "run").read_text("utf-8")
    header = re.sub(r"<[^>]+>", " ", page.split("<header>")[1].split("</header>")[0])
    assert "Verifier" in header
    assert "likelihood" not in header
    measures = re.findall(r"<tr><th[^>]*>(.*?)</th>", page.split('class="measures"')[1].split("</table>")[0])
    assert [m for m in measures if m.startswith(("pass@", "maj@"))] == [
        "pass@1: a sampled answer is right",
        "pass@4: one of 4 is right",
        "maj@4: the result given most often is right",
    ]
    assert not any("passage" in m for m in measures)
