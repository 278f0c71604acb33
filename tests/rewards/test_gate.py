"""Answers that say nothing never reach a judge, and short true ones do."""

import pytest

from fakes import chat
from groundrule.rewards.attempt import attempt_of
from groundrule.rewards.gate import GATED_SCORE, question_len, trivial

NOTHING = [
    "",
    "  \n\t",
    "\u200b\u200b",
    ":",
    ".",
    "...",
    "—",
    "```\n```",
    "** **",
    "<div></div>",
    "Thought process:",
    "**Thought Process:**",
    "# Solution",
    "Solution:",
    "Answer: ...",
    "The final answer is:",
    "Let's solve this step by step.",
    "Let’s think step by step!",
    "Sure, let me solve this step by step.",
    "I will answer this question carefully.",
    "Reasoning:\n\nSolution:",
    "Solution: Let's solve this step by step.",
    "解",
    "让我们逐步思考。",
    "思考过程：",
    "解説",
    "풀이:",
    "Respuesta:",
    "Solucion",
    "Résolvons cela étape par étape.",
    "Lösung:",
    "Lass uns das Schritt für Schritt lösen.",
    "Решение:",
    "Давайте решим это шаг за шагом.",
    "الحل:",
]


@pytest.mark.parametrize("answer", NOTHING)
def test_an_answer_that_says_nothing_is_gated(answer):
    assert trivial(attempt_of(chat(answer)))


SHORT_AND_TRUE = [
    "4",
    "Yes.",
    "No",
    "是",
    "B",
    "(b)",
    "42 €",
    "x",
    "½",
    "∞",
    "👍",
    "✓",
    "はい",
    "OK",
    "Done.",
    "Sure.",
    "**7**",
    "Solution: 4",
    "Answer: no",
    "The answer is B.",
    "Let's solve this step by step. 2 + 2 = 4.",
    "Thought process: none",
    "I can't find that in the documents.",
    "Step by step instructions are on page 3.",
    "The solution is to restart the router.",
]


@pytest.mark.parametrize("answer", SHORT_AND_TRUE)
def test_a_short_true_answer_passes(answer):
    assert trivial(attempt_of(chat(answer))) is None


def test_the_reason_names_the_answer():
    assert trivial(attempt_of(chat("Solution:"))) == "the answer is only an opener: 'Solution:'"
    assert trivial(attempt_of(chat(":"))) == "the answer has no letter, digit or symbol: ':'"
    assert trivial(attempt_of(chat(" "))) == "the answer is empty"


def test_an_attempt_without_an_answer_is_gated():
    assert trivial(attempt_of(chat("")[:2])) == "the agent gave no answer"


def test_a_gated_attempt_gets_the_floor():
    assert GATED_SCORE == 0.0


CALL = {"id": "1", "type": "function", "function": {"name": "refund", "arguments": "{}"}}
SUBSTANCE = {
    "a tool call": [{"role": "assistant", "content": "", "tool_calls": [CALL]}],
    "a tool call before": [
        {"role": "assistant", "content": "", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "1", "content": "ok"},
        {"role": "assistant", "content": ":"},
    ],
    "words before": [
        {"role": "assistant", "content": "The parcel arrives on Friday."},
        {"role": "user", "content": "Thanks!"},
        {"role": "assistant", "content": "..."},
    ],
    "a refusal": [{"role": "assistant", "content": "", "refusal": "I will not."}],
    "an image": [{"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}],
}


@pytest.mark.parametrize("turns", SUBSTANCE.values(), ids=SUBSTANCE)
def test_other_substance_opens_the_gate(turns):
    assert trivial(attempt_of([*chat("")[:2], *turns])) is None


def test_work_in_a_further_conversation_opens_the_gate():
    history = [{"role": "user", "content": "plan"}, {"role": "assistant", "content": "First search."}]
    assert trivial(attempt_of(chat(":"), histories=[history])) is None
    assert trivial(attempt_of(chat(":"), histories=[history[:1]])) is not None


GIVEN = [*chat("Hello, how can I help?"), {"role": "user", "content": "Refund, please."}]


def test_words_that_the_agent_was_given_are_no_substance_of_its_own():
    attempts = [
        attempt_of([*GIVEN, {"role": "assistant", "content": text}]) for text in (":", "Yes, within 30 days.")
    ]
    assert question_len(attempts) == 4
    assert trivial(attempts[0], 4)
    assert trivial(attempts[0]) is None
    assert trivial(attempts[1], 4) is None


def test_work_that_all_members_did_alike_is_not_part_of_the_question():
    work = SUBSTANCE["a tool call before"][:2]
    attempts = [
        attempt_of([*chat("")[:2], *work, {"role": "assistant", "content": text}]) for text in (":", "Done.")
    ]
    assert question_len(attempts) == 2
    assert trivial(attempts[0], 2) is None
