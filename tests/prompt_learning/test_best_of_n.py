"""Whole playbooks by a scripted writer, compared in the simulated world."""

from __future__ import annotations

import json

import pytest

from groundrule._util.digest import digest
from groundrule.data.protocols import ChatReply, Policy
from groundrule.errors import ConfigError, JudgeReplyError
from groundrule.llm import ScriptedClient
from groundrule.prompt_learning.best_of_n import BestOfN
from groundrule.prompt_learning.reflection import Reflector
from groundrule.prompt_learning.rewriting import read_lessons
from groundrule.prompt_learning.settings import PromptSettings
from groundrule.prompt_learning.simulated import HABITS, SPEC, SimulatedAgent, SimulatedJudge, World
from groundrule.prompt_learning.trial import Trial
from groundrule.rewards.judges import Judge

CITE, DATES, DIRECT = (habit.lesson for habit in HABITS[:3])
SEMICOLONS = "Prefer semicolons over dashes between clauses."
PAD, ROUND_OFF, LEAVE_OUT = (habit.lesson for habit in HABITS if habit.kind == "harmful")
ANY_ANSWER = "Any answer is fine as long as it is friendly."
SETTINGS = PromptSettings(check_contradictions=False)
TESTS = 12


def learner_of(*lists, n=3, settings=SETTINGS):
    """A learner whose model writes these lists, or answers by this function, and that model."""
    world = World(seed=1)
    is_function = lists and callable(lists[0])
    client = ScriptedClient(lists[0] if is_function else [{"lessons": lessons} for lessons in lists])
    trial = Trial(SPEC, SimulatedAgent(world), Policy("", "simulated", 0), SimulatedJudge(world))
    reflector = Reflector([Judge(client, "writer")])
    return BestOfN(trial, reflector, world.tasks[:TESTS], settings, n=n), client


async def a_round(learner):
    """Evidence from the scenarios that are not for tests, and what is made of it."""
    world = World(seed=1)
    asking = Trial(SPEC, SimulatedAgent(world), Policy("", "simulated", 0), SimulatedJudge(world), attempts=4)
    groups = await asking.groups([learner.parent_prompt], world.tasks[TESTS:24], learner.state.round)
    return await learner.update(groups)


def lessons_of(learner):
    return [lesson.text for lesson in learner.parent.playbook.lessons]


async def test_the_candidate_with_the_best_mean_is_kept():
    learner, _ = learner_of([SEMICOLONS], [CITE, DATES], [PAD])
    update = await a_round(learner)
    assert lessons_of(learner) == [CITE, DATES]
    assert update.policy.system_prompt == f"{SPEC}\n\nLessons from earlier work:\n1. {CITE}\n2. {DATES}"


async def test_the_candidate_that_is_kept_is_recorded():
    learner, _ = learner_of([SEMICOLONS], [CITE, DATES], [PAD])
    await a_round(learner)
    assert learner.record["accepted"] == [1]


async def test_nothing_is_kept_where_no_mean_is_above_the_start():
    learner, _ = learner_of([PAD, ROUND_OFF], [ROUND_OFF], [LEAVE_OUT, PAD])
    update = await a_round(learner)
    assert (lessons_of(learner), update.policy.version, learner.record["accepted"]) == ([], 0, [])


async def test_three_candidates_and_the_start_make_groups_of_eight():
    learner, _ = learner_of([CITE], [DATES], [PAD])
    await a_round(learner)
    group = learner.tested_groups[0]
    prompts = [member.metadata["prompt"] for member in group]
    assert len(learner.tested_groups) == TESTS
    assert (len(group), prompts.count(digest(SPEC)), len(set(prompts))) == (8, 2, 4)


async def test_a_fourth_candidate_stands_in_a_group_of_its_own():
    learner, _ = learner_of([CITE], [DATES], [PAD], [DIRECT], n=4)
    await a_round(learner)
    assert {len(group) for group in learner.tested_groups} == {8, 4}


async def test_it_counts_the_rollouts_of_its_comparisons():
    learner, _ = learner_of([CITE], [DATES], [PAD])
    update = await a_round(learner)
    assert update.metrics["prompt/rollouts"] == 4 * 2 * TESTS


async def test_candidates_that_say_the_same_are_compared_once():
    learner, _ = learner_of([CITE, DATES], [DATES, CITE], [CITE, DATES])
    update = await a_round(learner)
    assert update.metrics["prompt/tested"] == 1


async def test_each_copy_is_asked_for_with_another_seed():
    learner, client = learner_of([CITE], [DATES], [PAD])
    await a_round(learner)
    assert len({request.params["seed"] for request in client.requests}) == 3


async def test_the_writer_sees_complaints_and_the_limits_of_a_playbook():
    learner, client = learner_of([CITE], [DATES], [PAD])
    await a_round(learner)
    material = json.loads(client.requests[0].messages[1]["content"])
    assert material["PLAYBOOK"] == {"lessons_at_most": 20, "words_in_a_lesson_at_most": 45}
    assert material["COMPLAINTS"] and material["EXAMPLES"]


async def test_a_lesson_that_lowers_the_bar_is_taken_out_before_anything_is_compared():
    learner, _ = learner_of([CITE, ANY_ANSWER], [PAD], [ROUND_OFF])
    await a_round(learner)
    assert lessons_of(learner) == [CITE]
    assert [one["edit"]["text"] for one in learner.record["refused"]] == [ANY_ANSWER]


async def test_a_lesson_that_contradicts_the_spec_is_asked_about_once_and_taken_out():
    def answer(request):
        material = json.loads(request.messages[1]["content"])
        if "COMPLAINTS" in material:
            return {"lessons": [CITE, DATES]}
        broken = material["LESSON"] == DATES
        return {"quote": "be brief", "verdict": "contradicts" if broken else "consistent"}

    learner, client = learner_of(answer, settings=PromptSettings())
    await a_round(learner)
    assert lessons_of(learner) == [CITE]
    assert len(client.requests) == 3 + 2


async def test_the_next_round_starts_from_the_winner():
    learner, _ = learner_of([CITE], [PAD], [ROUND_OFF], [CITE, DATES], [CITE], [PAD])
    await a_round(learner)
    first = learner.parent.playbook.lessons[0]
    await a_round(learner)
    assert lessons_of(learner) == [CITE, DATES]
    assert learner.parent.playbook.lessons[0] == first
    assert (learner.parent.parent, learner.parent.how, learner.parent.round) == (1, "best of n", 2)


async def test_groups_that_were_answered_under_another_prompt_are_refused():
    learner, _ = learner_of([CITE])
    world = World(seed=1)
    asking = Trial(SPEC, SimulatedAgent(world), Policy("", "simulated", 0), SimulatedJudge(world))
    groups = await asking.groups(["Be terse."], world.tasks[TESTS:14])
    with pytest.raises(ConfigError, match="this round starts from version 0"):
        await learner.update(groups)


async def test_without_complaints_nothing_is_asked():
    learner, client = learner_of()
    update = await learner.update([])
    assert (client.requests, update.metrics["prompt/tested"]) == ([], 0)


def test_without_scenarios_it_is_refused():
    with pytest.raises(ConfigError, match="hold some out"):
        BestOfN(learner_of()[0].trial, Reflector([]), [])


@pytest.mark.parametrize(
    ("listed", "what"),
    [("one", "must be a list of texts"), ([1], "must be a list of texts"), (["x"] * 21, "21 lessons")],
)
def test_a_reply_that_is_no_list_of_lessons_is_refused(listed, what):
    with pytest.raises(JudgeReplyError, match=what):
        read_lessons(ChatReply(json.dumps({"lessons": listed})))


def test_empty_lessons_are_left_out_and_line_breaks_closed():
    assert read_lessons(ChatReply('{"lessons": ["Say\\n it.", " "]}')) == ["Say it."]
