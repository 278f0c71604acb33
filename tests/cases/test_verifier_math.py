"""Answers to mathematical questions on which other graders went wrong, and pairs of our own."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from groundrule.data import Score
from groundrule.rewards.verifiers.math import verify_math

FOLDER = Path(__file__).parent
CASES = json.loads((FOLDER / "verifier_math.json").read_text("utf-8"))
PAIRS = json.loads((FOLDER / "math_pairs.json").read_text("utf-8"))

PATIENT_S = 60.0
"""On a machine that does other work too a verdict may take long; none of these cases needs a limit."""


def verdict(case: dict[str, Any]) -> Score:
    answer = case["answer"]
    if "repeat" in case:
        piece, times = case["repeat"]
        answer = answer.replace(piece, piece * times)
    if case.get("thread"):
        with ThreadPoolExecutor(1) as pool:
            return pool.submit(verify_math, answer, case["gold"], timeout_s=PATIENT_S).result()
    return verify_math(answer, case["gold"], timeout_s=PATIENT_S)


@pytest.mark.parametrize("case", [pytest.param(c, id=c["name"]) for c in CASES if "correct" in c])
def test_the_case_gets_the_right_verdict(case):
    assert verdict(case).value == float(case["correct"])


@pytest.mark.parametrize("case", [pytest.param(c, id=c["name"]) for c in CASES if "error" in c])
def test_the_case_gets_no_score(case):
    score = verdict(case)
    assert (score.value, score.reason.partition(":")[0]) == (None, case["error"])


def in_box(gold: str, answer: str) -> float | None:
    return verify_math(f"So it is \\boxed{{{answer}}}.", gold, timeout_s=PATIENT_S).value


@pytest.mark.parametrize(("gold", "answer"), PAIRS["equal"])
def test_what_says_the_same_is_right(gold, answer):
    assert in_box(gold, answer) == 1.0


@pytest.mark.parametrize(("gold", "answer"), PAIRS["different"])
def test_what_says_something_else_is_wrong(gold, answer):
    assert in_box(gold, answer) == 0.0


@pytest.mark.parametrize(("gold", "answer"), PAIRS["undecided"])
def test_what_cannot_be_read_for_sure_gets_no_score(gold, answer):
    assert in_box(gold, answer) is None
