"""Finding the final answer, and what happens when there is none or no verdict."""

from __future__ import annotations

import asyncio
import threading

import pytest

from groundrule.errors import ConfigError
from groundrule.rewards.verifiers import math as verifier
from groundrule.rewards.verifiers import verify_math, verify_math_async
from groundrule.rewards.verifiers.math_answer import find_answer
from groundrule.rewards.verifiers.math_text import plain

PATIENT_S = 60.0
TOWER = r"\boxed{9^{9^{9^{9}}}}"
"""Its value has more digits than any memory; sympy would try for ever."""


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        (r"\boxed{7}", "7"),
        (r"\boxed {7}", "7"),
        (r"\fbox{7}", "7"),
        (r"\boxed{\frac{1}{\sqrt{2}}} is it.", r"\frac{1}{\sqrt{2}}"),
        (r"\boxed{\{1, 2\}}", r"\{1, 2\}"),
        (r"\boxed{1} no, \boxed{2}", "2"),
        (r"\boxed{\boxed{3}}", "3"),
        (r"<think>\boxed{1}</think> \boxed{2}", "2"),
        (r"thinking without a start \boxed{1}</think>\boxed{2}", "2"),
        (r"\boxed{5}, in \boxed form as asked", "5"),
    ],
)
def test_the_last_box_outside_the_thinking_is_the_answer(reply, answer):
    assert find_answer(reply).text == answer


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "The answer is 7.",
        r"\boxed{}",
        r"\boxed{7} and then \boxed{8",
        r"<think>\boxed{7}",
        r"<think>\boxed{7}</think>",
        r"\boxed{7} Wait. <think> or \boxed{8} </think> \boxed{ }",
    ],
)
def test_a_reply_without_a_closed_box_has_no_answer_and_is_wrong(reply):
    assert verify_math(reply, "7").value == 0.0


@pytest.mark.parametrize(
    ("reply", "answer"),
    [
        ("The answer is 7.", "7"),
        ("First 3. The final answer is: $\\frac{1}{2}$.", r"\frac{1}{2}"),
        ("**Answer:** 42", "42"),
        ("some steps\n#### 1,234", "1,234"),
        ("So we get\n$x = 3$ and then $y = 4$", "y = 4"),
        ("We compute.\nx = 12", "x = 12"),
        ("The answer is 5. No, the answer is 6.", "6"),
        (r"The answer is 5, or \boxed{6}", "6"),
    ],
)
def test_without_a_box_what_is_stated_last_counts_if_it_is_allowed(reply, answer):
    assert find_answer(reply, allow_unboxed=True).text == answer


@pytest.mark.parametrize("reply", ["7 apples cost 3, so ... I don't know", "I will not answer.", ""])
def test_a_number_in_the_prose_is_no_answer_even_then(reply):
    assert verify_math(reply, "3", allow_unboxed=True).value == 0.0


def test_an_unclosed_box_is_not_replaced_by_what_was_stated():
    assert verify_math(r"The answer is 7. So \boxed{7", "7", allow_unboxed=True).value == 0.0


@pytest.mark.parametrize("gold", [r"\boxed{\frac{1}{2}}", "$0.5$", " 1/2 ", r"\(\frac12\)"])
def test_the_reference_may_be_written_in_a_box_or_as_a_formula(gold):
    assert verify_math(r"\boxed{0.5}", gold, timeout_s=PATIENT_S).value == 1.0


@pytest.mark.parametrize("gold", ["", "  ", r"\boxed{}", "((", r"\foo{1}"])
def test_a_reference_that_cannot_be_read_gives_no_score(gold):
    assert verify_math(r"\boxed{5}", gold, timeout_s=PATIENT_S).reason.startswith("bad_gold: ")


def test_an_unreadable_reference_that_was_repeated_word_for_word_is_still_right():
    assert verify_math(r"\boxed{\foo{ 1 }}", r"\foo{1}", timeout_s=PATIENT_S).value == 1.0


def test_prose_in_the_box_is_a_wrong_answer_and_not_an_unreadable_one():
    assert verify_math(r"\boxed{I think that it is 5.}", "5", timeout_s=PATIENT_S).value == 0.0


def test_a_long_text_is_no_final_answer_and_is_not_parsed(monkeypatch):
    monkeypatch.setattr(verifier, "shared", None)
    assert verify_math("\\boxed{" + "1+" * 5000 + "1}", "5001").value == 0.0


def test_a_computation_without_end_gives_no_score_and_the_next_answer_is_verified():
    scores = [verify_math(TOWER, "7", timeout_s=0.5), verify_math(r"\boxed{7.0}", "7", timeout_s=PATIENT_S)]
    assert [(s.value, (s.reason or "").partition(":")[0]) for s in scores] == [(None, "timeout"), (1.0, "")]


def test_the_limit_holds_in_a_thread_too():
    said = []
    thread = threading.Thread(target=lambda: said.append(verify_math(TOWER, "7", timeout_s=0.5).reason))
    thread.start()
    thread.join()
    assert said == ["timeout: no result within 0.5 s"]


async def test_the_event_loop_goes_on_while_a_verdict_is_awaited():
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticking = asyncio.ensure_future(tick())
    score = await verify_math_async(TOWER, "7", timeout_s=0.5)
    ticking.cancel()
    assert score.value is None and ticks > 5


def test_verifying_without_math_verify_names_the_remedy(monkeypatch):
    monkeypatch.setattr(verifier.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'groundrule\[verify\]'"):
        verify_math(r"\boxed{1}", "1")


def test_the_explanation_shows_both_sides():
    assert (
        verify_math(r"\boxed{3}", "4", timeout_s=PATIENT_S).explanation
        == "not equal: '3' against the reference '4'"
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"1\,000", "1000"),
        ("1 1/4", r"\frac{5}{4}"),
        (r"-2\frac{1}{2}", r"-\frac{5}{2}"),
        (r"\frac{7}{3}", r"\frac{7}{3}"),
        ("x²", "x^{2}"),
        (r"\left( \dfrac12 \right)", r"( \frac12 )"),
        (r"0.1\overline{6}", r"\frac{15}{90}"),
        (".5", ".5"),
        ("6.", "6"),
        (r"\$5", r"\text{dollar}5"),
    ],
)
def test_spellings_become_one(text, expected):
    assert plain(text) == expected
