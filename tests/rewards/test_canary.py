"""Attempts made to test a judge."""

import random

import pytest

from fakes import chat
from groundrule.rewards.attempt import attempt_of
from groundrule.rewards.canary import CANARY_KINDS, canary_of, check_canary, twin, twin_gap
from groundrule.rewards.detector import addresses_grader
from groundrule.rewards.gate import trivial
from groundrule.rewards.transcript import render

GOOD = attempt_of(
    chat("Refunds are available within 30 days of purchase, with the original receipt, at any shop.")
)


def answer_of(attempt) -> str:
    return attempt.turns[-1]["content"]


@pytest.mark.parametrize("kind", CANARY_KINDS)
def test_a_canary_keeps_the_question_and_replaces_the_answer(kind):
    bad = canary_of(GOOD, kind, random.Random(0))
    assert bad.turns[:2] == GOOD.turns[:2]
    assert len(bad.turns) == 3
    assert "30 days" not in answer_of(bad)


def test_an_opener_says_nothing():
    answers = {answer_of(canary_of(GOOD, "opener", random.Random(seed))) for seed in range(20)}
    assert len(answers) > 2
    assert all(trivial(attempt_of(chat(answer))) for answer in answers)


def test_an_injection_addresses_the_grader():
    answers = {answer_of(canary_of(GOOD, "injection", random.Random(seed))) for seed in range(20)}
    assert len(answers) == 3
    assert all(addresses_grader(answer) for answer in answers)


@pytest.mark.parametrize("answer", ["4", "Yes, of course.", "", "B"])
def test_nothing_of_a_short_answer_survives_garbling(answer):
    bad = answer_of(canary_of(attempt_of(chat(answer)), "garbled", random.Random(1)))
    assert len(bad) > 5
    assert not set(bad.split()) & set(answer.split())


def test_an_attempt_that_never_answered_can_become_a_canary():
    for kind in CANARY_KINDS:
        assert answer_of(canary_of(attempt_of(chat("")[:2]), kind, random.Random(0)))


def test_with_the_length_of_the_question_earlier_work_goes_too():
    call = {"id": "1", "type": "function", "function": {"name": "refund", "arguments": "{}"}}
    worked = attempt_of(
        [
            *chat("")[:2],
            {"role": "assistant", "content": "", "tool_calls": [call]},
            *chat("Done, your refund is on its way.")[2:],
        ]
    )
    assert len(canary_of(worked, "opener", random.Random(0)).turns) == 4
    assert len(canary_of(worked, "opener", random.Random(0), question_len=2).turns) == 3


def test_the_same_generator_makes_the_same_canary():
    for kind in CANARY_KINDS:
        assert canary_of(GOOD, kind, random.Random(7)) == canary_of(GOOD, kind, random.Random(7))


def test_a_twin_reads_the_same_and_counts_as_another():
    copy = twin(GOOD, random.Random(0))
    assert copy.key != GOOD.key
    other = attempt_of(chat("no"))
    assert render([copy, other]).content == render([GOOD, other]).content


def test_two_twins_of_one_attempt_are_two():
    rng = random.Random(0)
    assert twin(GOOD, rng).key != twin(GOOD, rng).key


def test_the_canary_must_be_lowest_or_tied_lowest():
    assert check_canary([0.9, 0.1, 0.4], 1)
    assert check_canary([0.1, 0.1, 0.4], 1)
    assert not check_canary([0.9, 0.2, 0.1], 1)


def test_a_canary_alone_proves_nothing():
    with pytest.raises(ValueError, match="real attempts"):
        check_canary([0.0], 0)


def test_the_twin_gap_is_a_distance():
    assert twin_gap([0.25, 0.5, 0.75], 0, 2) == 0.5
    assert twin_gap([0.25, 0.5, 0.75], 2, 0) == 0.5
