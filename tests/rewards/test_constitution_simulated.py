"""The simulated teacher: what it writes, how often it errs, and on what that depends."""

from __future__ import annotations

import pytest

from constitutions import ONE, THREE
from fakes import chat
from groundrule.data.protocols import ChatRequest
from groundrule.errors import ConfigError, JudgeError, LlmError
from groundrule.rewards.attempt import attempt_of
from groundrule.rewards.constitution.comparing import Comparer, comparing_judge
from groundrule.rewards.constitution.revising import Reviser
from groundrule.rewards.constitution.simulated import SimulatedTeacher

BETTER = {"Refunds?": "Within thirty days.", "Parking?": "Behind the mill."}


def better(task: str) -> str | None:
    return next((answer for question, answer in BETTER.items() if question in task), None)


def quality(task: str, answer: str) -> float:
    """The share of the better answer's words, so that texts of other words are equal."""
    words = (better(task) or "").split()
    return sum(word in answer for word in words) / max(1, len(words))


def teacher(**more) -> SimulatedTeacher:
    return SimulatedTeacher(better, quality, **more)


def asked(client):
    return comparing_judge("teacher/simulated", client=client)


async def revisions(client, question: str, answers: list[str]) -> list:
    """The round of each answer to one question."""
    reviser = Reviser(asked(client), THREE, rounds=1, exemplars=1)
    prompt = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
    return [(await reviser.revise(prompt, answer)).rounds[0] for answer in answers]


async def opinions(client, pairs: list[tuple[str, str]], **more) -> list:
    comparer = Comparer(asked(client), ONE, **more)
    return [
        (await comparer.compare(*(attempt_of(chat(text)) for text in pair)))[0]
        for pair in pairs
    ]  # fmt: skip


def many(count: int, text: str = "Call us") -> list[str]:
    return [f"{text}, number {i}." for i in range(count)]


async def test_a_critique_names_what_is_missing_and_what_is_needless():
    [one] = await revisions(teacher(), "Refunds?", ["Refunds are made gladly within weeks."])
    assert one.critique == "It does not say: thirty, days. It need not say: refunds, made, gladly, weeks."


async def test_a_revision_is_the_better_answer():
    [one] = await revisions(teacher(error=0.0), "Refunds?", ["Ask someone else."])
    assert one.revision == "Within thirty days."


async def test_in_a_share_of_the_revisions_the_answer_comes_back_as_it_was():
    answers = many(200)
    rounds = await revisions(teacher(error=0.25), "Refunds?", answers)
    same = [r.revision == a for r, a in zip(rounds, answers, strict=True)]
    assert 0.18 < sum(same) / 200 < 0.32
    assert {r.revision for r, is_same in zip(rounds, same, strict=True) if not is_same} == {
        "Within thirty days."
    }


async def test_what_it_does_not_know_comes_back_as_it_was():
    [one] = await revisions(teacher(error=0.0), "Dogs?", ["Yes."])
    assert (one.critique, one.revision) == ("It is as good as one can tell.", "Yes.")


async def test_the_better_answer_is_preferred_as_probably_as_it_is_right():
    [one] = await opinions(teacher(error=0.0), [("Within thirty days.", "Ask someone.")])
    assert (one.orders, one.by) == ((pytest.approx(0.99), pytest.approx(0.99)), "logprobs")
    assert one.mass == pytest.approx(1.0)


async def test_in_a_share_of_the_comparisons_the_worse_one_is():
    found = await opinions(teacher(error=0.2), [("Within thirty days.", text) for text in many(200)])
    orders = [p for one in found for p in one.orders]
    assert {round(p, 6) for p in orders} == {0.2, 0.8}
    assert 0.14 < sum(p < 0.5 for p in orders) / 400 < 0.26


async def test_answers_of_equal_quality_are_a_tie():
    [one] = await opinions(teacher(), [("Ask someone.", "Call us.")])
    assert (one.p, one.orders) == (0.5, (0.5, 0.5))


async def test_without_log_probabilities_its_letters_are_counted():
    [one] = await opinions(teacher(error=0.0), [("Within thirty days.", "Ask.")], logprobs=False, samples=3)
    assert (one.by, one.orders) == ("samples", (0.8, pytest.approx(0.8)))


async def test_a_letter_is_chosen_like_the_thought_before_it():
    found = await opinions(teacher(error=0.4), [("Within thirty days.", t) for t in many(40)], think=True)
    for one in found:
        said = ["(A) fares better" in text for text in one.rationales]
        assert [one.orders[0] == 0.6, one.orders[1] == 0.4] == said
    assert {one.orders[0] for one in found} == {0.4, 0.6}


async def test_what_it_says_depends_on_the_prompt_and_not_on_the_order_of_calls():
    pairs = [("Within thirty days.", text) for text in many(30)]
    forward = await opinions(teacher(error=0.4), pairs)
    backward = await opinions(teacher(error=0.4), pairs[::-1])
    assert [o.orders for o in forward] == [o.orders for o in backward[::-1]]
    other = await opinions(teacher(error=0.4, seed=1), pairs)
    assert [o.orders for o in forward] != [o.orders for o in other]


async def test_the_same_prompt_asked_again_is_drawn_again():
    client = teacher(error=0.4)
    found = [(await opinions(client, [("Within thirty days.", "Ask.")]))[0].orders[0] for _ in range(20)]
    assert {round(p, 6) for p in found} == {0.4, 0.6}


async def test_prompts_of_others_are_refused():
    request = ChatRequest("m", ({"role": "user", "content": "Hello?"},), purpose="judge/ruler")
    with pytest.raises(LlmError, match="was asked for 'judge/ruler'"):
        await teacher().complete(request)
    with pytest.raises(JudgeError, match="asked for 'constitution/answer'"):
        await Reviser(asked(teacher()), ONE).revise([{"role": "user", "content": "Refunds?"}])


@pytest.mark.parametrize("error", [-0.1, 0.6])
def test_an_error_that_is_no_share_below_chance_is_refused(error):
    with pytest.raises(ConfigError, match="take a share from 0 to"):
        teacher(error=error)
