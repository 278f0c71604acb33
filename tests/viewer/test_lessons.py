"""The report of a learned prompt: lessons, their evidence, their tests, and the final test."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from groundrule.data.runs import Run
from groundrule.viewer.lessons import learned_prompt
from groundrule.viewer.markup import join
from groundrule.viewer.report import render_report

LESSON = {"id": "L2", "text": "Give <full> dates.", "helpful": 9, "harmful": 3}
CONTRAST = {
    "id": "r1g2",
    "task": "When does it end?",
    "best": "On 3 May.",
    "best_score": 0.9,
    "best_explanation": "It names the date.",
    "worst": "Soon.",
    "worst_score": 0.2,
    "worst_explanation": "No date is named.",
}
LOOKS = [{"scenarios": 16, "mean": 0.081, "p": 0.0004, "level": 0.001}]


def version(number: int, **changes: Any) -> dict[str, Any]:
    start = {
        "number": number,
        "playbook": [],
        "parent": None,
        "how": "start",
        "round": 0,
        "edit": None,
        "lesson": None,
        "evidence": [],
        "test": None,
        "gains": {},
    }
    return {**start, **changes}


LEARNED = version(
    1,
    playbook=[LESSON],
    parent=0,
    how="test",
    round=1,
    edit={"action": "add", "rationale": "dates are asked for"},
    lesson="L2",
    evidence=[CONTRAST],
    test={"looks": LOOKS},
    gains={"s1": 0.08},
)
STATE = {"pool": {"versions": [version(0), LEARNED], "head": 1}}
FINAL = {
    "scenarios": 16,
    "same_prompt": False,
    "difference": {"value": 0.05, "low": -0.01, "high": 0.11},
    "better": 10,
    "worse": 6,
}


def page(state: dict[str, Any], *final: dict[str, Any]) -> str:
    return str(join(learned_prompt(state, final)))


def test_a_lesson_stands_with_what_the_judge_said_when_it_was_missing():
    shown = page(STATE)

    assert "1. Give &lt;full&gt; dates. " in shown
    assert "better on 9 test scenarios, worse on 3" in shown
    assert "Round 1, test because dates are asked for. +0.081 on 16 scenarios, p 0.0004 of 0.001" in shown
    assert "No date is named." in shown
    assert "worst (0.20)" in shown


def test_the_current_version_is_the_one_with_the_highest_gain():
    assert "1 (current)" in page(STATE)


def test_the_final_test_comes_with_its_interval():
    assert "+0.050</strong> (95 %: -0.010 to +0.110)" in page(STATE, FINAL)


@pytest.mark.parametrize(
    ("final", "said"),
    [
        ({"same_prompt": True, "scenarios": 16}, "No lesson was accepted"),
        ({"same_prompt": False, "scenarios": 0}, "gave no scores for both prompts"),
    ],
)
def test_a_final_test_without_numbers_says_why(final, said):
    assert said in page(STATE, final)


def test_a_prompt_without_lessons_says_so():
    assert "The prompt has no lessons." in page({"pool": {"versions": [version(0)], "head": 0}})


def test_a_run_that_trains_weights_has_no_such_section():
    assert learned_prompt({"cursor": 3}, []) == []


def test_the_page_counts_rounds_and_does_not_miss_an_evaluation(tmp_path: Path):
    with Run.create(tmp_path, {"learn": {"rounds": 5}, "train": {"steps": 10}}) as run:
        run.record_step(1, [], {"reward/mean": 0.5}, state=STATE)
        text = render_report(run)

    assert "1 of 5" in text
    assert "There is no evaluation before and after" not in text
