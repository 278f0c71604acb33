"""Critique and revision, call by call."""

from __future__ import annotations

import pytest

from constitutions import THREE
from groundrule.data.protocols import ChatReply
from groundrule.errors import BudgetError, ConfigError, JudgeError, LlmError
from groundrule.llm import ScriptedClient
from groundrule.llm.cost import Budget, Ledger, use_ledger
from groundrule.rewards.constitution.comparing import comparing_judge
from groundrule.rewards.constitution.revising import Reviser

PROMPT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Refunds?"}]


def reviser(client, **more):
    return Reviser(comparing_judge("openai/gpt-4.1", client=client), THREE, **more)


async def test_an_answer_is_criticised_and_revised_round_after_round():
    client = ScriptedClient(["first", "critique 1", "second", "critique 2", "third"])
    revised = await reviser(client, exemplars=0).revise(PROMPT)

    assert revised.answer == "first"
    assert [(r.critique, r.revision) for r in revised.rounds] == [
        ("critique 1", "second"),
        ("critique 2", "third"),
    ]
    assert [r.principle for r in revised.rounds] == ["b", "c"]
    assert [r.purpose for r in client.requests] == [
        "constitution/answer",
        "constitution/critique",
        "constitution/revision",
        "constitution/critique",
        "constitution/revision",
    ]


async def test_each_call_shows_the_conversation_so_far():
    client = ScriptedClient(["first", "critique 1", "second", "critique 2", "third"])
    await reviser(client, exemplars=0).revise(PROMPT)
    critique = {"role": "user", "content": "Critique by b. Name concrete points, in at most three sentences."}
    revision = {
        "role": "user",
        "content": "Revise by b. Write only the new answer, as it is to be sent.",
    }

    assert list(client.requests[0].messages) == PROMPT
    assert list(client.requests[1].messages) == [*PROMPT, {"role": "assistant", "content": "first"}, critique]
    assert list(client.requests[2].messages) == [
        *PROMPT,
        {"role": "assistant", "content": "first"},
        critique,
        {"role": "assistant", "content": "critique 1"},
        revision,
    ]
    assert client.requests[3].messages[2] == {"role": "assistant", "content": "second"}


async def test_an_answer_that_is_there_is_not_asked_for():
    client = ScriptedClient(["critique", "better"])
    revised = await reviser(client, rounds=1).revise(PROMPT, "given")

    assert (revised.answer, revised.rounds[0].revision, len(client.requests)) == ("given", "better", 2)


async def test_an_exemplar_is_shown_between_the_system_prompt_and_the_question():
    client = ScriptedClient(["critique", "better"])
    await reviser(client, rounds=1).revise(PROMPT, "given")
    said = [m["content"].split(" Name")[0].split(" Write")[0] for m in client.requests[0].messages]

    assert said == [
        "Be brief.",
        "Old?",
        "Bad.",
        "Critique by b.",
        "Too short.",
        "Revise by b.",
        "Good.",
        "Refunds?",
        "given",
        "Critique by b.",
    ]


async def test_another_seed_draws_other_principles_and_no_seed_draws_one_twice_too_soon():
    client = ScriptedClient([])
    drawn = {seed: [p.id for p in reviser(client, rounds=4, seed=seed).drawn(PROMPT)] for seed in (0, 1, 2)}

    assert drawn == {0: ["b", "c", "a", "c"], 1: ["a", "c", "b", "b"], 2: ["c", "a", "b", "b"]}


@pytest.mark.parametrize(
    ("reply", "fault"),
    [
        ("  ", "empty"),
        (ChatReply("", refusal="I will not."), "refused"),
        (ChatReply("I will", finish_reason="content_filter"), "refused"),
        (ChatReply("half of it", finish_reason="length"), "cut"),
    ],
)
async def test_a_revision_that_is_none_is_counted_and_the_next_round_goes_on_from_the_answer_before(
    reply, fault
):
    client = ScriptedClient(["critique 1", reply, "critique 2", "third"])
    revised = await reviser(client, exemplars=0).revise(PROMPT, "first")

    assert [(r.revision, r.fault) for r in revised.rounds] == [(None, fault), ("third", None)]
    assert client.requests[2].messages[2] == {"role": "assistant", "content": "first"}
    assert [row["messages"][-1]["content"] for row in revised.rows("all")] == ["third"]


async def test_a_critique_may_be_cut_but_not_empty():
    client = ScriptedClient([ChatReply("cut critique", finish_reason="length"), "second", ""])
    revised = await reviser(client).revise(PROMPT, "first")

    assert [(r.critique, r.revision, r.fault) for r in revised.rounds] == [
        ("cut critique", "second", None),
        (None, None, "empty"),
    ]


async def test_without_an_answer_there_are_no_rounds():
    revised = await reviser(ScriptedClient([""])).revise(PROMPT)
    assert (revised.answer, revised.fault, revised.rounds, revised.rows()) == (None, "empty", [], [])


async def test_rows_say_how_they_came_about():
    client = ScriptedClient(["critique 1", "second", "critique 2", "third"])
    revised = await reviser(client).revise(PROMPT, "first")

    assert revised.rows("last") == [
        {
            "messages": [*PROMPT, {"role": "assistant", "content": "third"}],
            "metadata": {
                "round": 2,
                "principles": "b, c",
                "critiques": "critique 1\n\ncritique 2",
                "first_answer": "first",
            },
        }
    ]
    assert [row["metadata"]["round"] for row in revised.rows("all")] == [1, 2]


async def test_thinking_is_no_part_of_a_revision():
    client = ScriptedClient(["critique", "<think>hm</think>better"])
    revised = await reviser(client, rounds=1).revise(PROMPT, "first")
    assert revised.rounds[0].revision == "better"


async def test_a_critic_that_cannot_be_asked_is_an_error():
    with pytest.raises(JudgeError, match="down"):
        await reviser(ScriptedClient([LlmError("down")])).revise(PROMPT, "first")


async def test_a_critics_budget_is_a_hard_limit():
    client = ScriptedClient(["critique", "better"])
    with use_ledger(Ledger(budget=Budget(calls=1))), pytest.raises(BudgetError):
        await reviser(client).revise(PROMPT, "first")


def test_no_rounds_are_refused():
    with pytest.raises(ConfigError, match="rounds is 0"):
        reviser(ScriptedClient([]), rounds=0)
