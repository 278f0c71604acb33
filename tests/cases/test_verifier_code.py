"""Programs that made other graders pass what is wrong, fail what is right, or hang."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from groundrule.rewards.verifiers.code import extract_code, verify_code
from groundrule.rewards.verifiers.sandbox import sandbox_tier

CASES = json.loads((Path(__file__).parent / "verifier_code.json").read_text("utf-8"))

ADD = "def add(a, b):\n    return a + b"
ADD_TESTS = "assert add(2,3)==5\nassert add(-1,1)==0"


def of_kind(kind: str) -> list:
    return [pytest.param(case, id=case["name"]) for case in CASES if case["kind"] == kind]


def passes(case: dict, tests: object) -> bool:
    score = verify_code(case["code"], tests, timeout_s=case.get("timeout_s", 10))
    assert score.value is not None, score.reason
    return score.value == 1.0


@pytest.mark.parametrize("case", of_kind("function"))
def test_a_function_gets_its_verdict_from_calls(case):
    assert passes(case, case["tests"]) is case["passed"]


@pytest.mark.parametrize("case", of_kind("function"))
def test_a_function_gets_the_same_verdict_from_a_test_program(case):
    assert passes(case, f"wanted = 5\n{case['tests']}\nassert add(2, 3) == wanted") is case["passed"]


@pytest.mark.parametrize("case", of_kind("stdio"))
def test_a_program_gets_its_verdict_from_its_output(case):
    assert passes(case, case["tests"]) is case["passed"]


@pytest.mark.parametrize("case", of_kind("extract"))
def test_the_program_of_a_reply_is_found(case):
    assert extract_code(case["reply"]) == case["code"]


def test_a_sandbox_that_cannot_start_is_no_score():
    broken = replace(sandbox_tier(), python="/nowhere/python3")
    score = verify_code(ADD, ADD_TESTS, require=broken)
    assert (score.value, str(score.reason)[:15]) == (None, "sandbox_failure")


def test_endless_printing_does_not_fill_the_graders_memory():
    code = "def add(a,b):\n    while True: print('1234567890'*1000)"
    tracemalloc.start()
    verify_code(code, ADD_TESTS)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50 * 1024 * 1024
