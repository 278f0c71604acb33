"""Answers given under an edited prompt are judged by the spec, and by nothing else."""

from __future__ import annotations

import pytest

from fakes import KeywordJudge, chat, group_of, prompt_of
from groundrule.data import Score, Trajectory, TrajectoryGroup
from groundrule.data.score import Scores
from groundrule.data.trajectory import History
from groundrule.llm import ScriptedClient
from groundrule.rewards import Ruler
from groundrule.rewards.frozen_spec import FrozenSpec, under_spec

SPEC = "Answer from the passage only."
EDITED = "Anything at all will do."
WORTH = {"first answer": 0.9, "second answer": 0.2}


class Keeping:
    """Gives what it is told to give, and keeps the group that it was shown."""

    def __init__(self, scores):
        self.scores, self.shown = scores, None

    async def score(self, group):
        self.shown = group
        return self.scores


def edited_group(**more):
    return TrajectoryGroup(
        [Trajectory(messages_and_choices=chat(answer, system=EDITED), **more) for answer in WORTH],
        scenario_id="s1",
        metadata={"question": "Refunds?"},
    )


async def shown_of(group, spec=SPEC):
    keeping = Keeping([Score(value=0.5) for _ in group])
    await FrozenSpec(keeping, spec).score(group)
    return keeping.shown


async def test_the_judge_reads_the_spec_and_not_the_edited_prompt():
    client = ScriptedClient(KeywordJudge(WORTH))
    await FrozenSpec(Ruler("openai/gpt-4.1", client=client), SPEC).score(edited_group())
    prompt = prompt_of(client.requests[0])
    assert (SPEC in prompt, EDITED in prompt) == (True, False)


async def test_the_judge_reads_the_spec_in_further_conversations_too():
    client = ScriptedClient(KeywordJudge(WORTH))
    histories = [History(messages_and_choices=chat("asked a helper", system=EDITED))]
    await FrozenSpec(Ruler("openai/gpt-4.1", client=client), SPEC).score(
        edited_group(additional_histories=histories)
    )
    prompt = prompt_of(client.requests[0])
    assert ("asked a helper" in prompt, EDITED in prompt) == (True, False)


async def test_scores_come_back_as_they_are():
    scores = Scores(
        [Score(value=0.7, explanation="good"), Score.none("cannot tell")], metrics={"judge_noise": 0.1}
    )
    assert await FrozenSpec(Keeping(scores), SPEC).score(edited_group()) is scores


async def test_an_error_of_the_scorer_comes_through():
    class Broken:
        async def score(self, group):
            raise RuntimeError("no judge today")

    with pytest.raises(RuntimeError, match="no judge today"):
        await FrozenSpec(Broken(), SPEC).score(edited_group())


async def test_the_given_group_is_not_changed():
    group = edited_group(additional_histories=[History(messages_and_choices=chat("helped", system=EDITED))])
    before = group.model_dump()
    await FrozenSpec(Ruler("openai/gpt-4.1", client=ScriptedClient(KeywordJudge(WORTH))), SPEC).score(group)
    assert group.model_dump() == before


async def test_what_else_is_known_of_the_group_is_shown_too():
    shown = await shown_of(edited_group(reward=0.4, metadata={"attempt": 1}))
    assert (shown.scenario_id, shown.metadata) == ("s1", {"question": "Refunds?"})
    assert [(t.reward, t.metadata) for t in shown] == [(0.4, {"attempt": 1})] * 2


async def test_all_that_follows_the_system_prompt_stays():
    shown = await shown_of(group_of("first answer"))
    assert shown.trajectories[0].messages() == [
        {"role": "system", "content": SPEC},
        {"role": "user", "content": "Refunds?"},
        {"role": "assistant", "content": "first answer"},
    ]


def roles_under(*roles, spec=SPEC):
    turns = [{"role": role, "content": f"{role} says"} for role in roles]
    return [m["role"] for m in under_spec(Trajectory(messages_and_choices=turns), spec).messages()]


@pytest.mark.parametrize(
    "opening",
    [["system"], ["developer"], ["system", "developer"], []],
    ids=["system", "developer", "both", "none"],
)
def test_one_system_prompt_takes_the_place_of_all_that_open_a_conversation(opening):
    assert roles_under(*opening, "user", "assistant") == ["system", "user", "assistant"]


def test_a_system_message_later_on_belongs_to_the_attempt():
    assert roles_under("system", "user", "system", "assistant") == ["system", "user", "system", "assistant"]


def test_an_empty_spec_leaves_no_system_prompt():
    assert roles_under("system", "user", "assistant", spec="") == ["user", "assistant"]
