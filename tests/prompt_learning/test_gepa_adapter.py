"""gepa on our scenarios, agent and judge: what it is told, and what comes back."""

from __future__ import annotations

import asyncio
import importlib.util
import json

import pytest

from groundrule.data import Score
from groundrule.data.protocols import ChatReply, Policy
from groundrule.data.score import Scores
from groundrule.errors import ConfigError, JudgeError, JudgeReplyError, LlmError
from groundrule.llm import ScriptedClient
from groundrule.prompt_learning.gepa_adapter import COMPONENT, GEPAAdapter, Remembered, learn_with_gepa
from groundrule.prompt_learning.gepa_reflection import (
    Trace,
    playbook_of,
    read_list,
    record_of,
    template,
    with_ids,
)
from groundrule.prompt_learning.playbook import Lesson, LessonIds, Playbook
from groundrule.prompt_learning.reflection import Reflector
from groundrule.prompt_learning.simulated import (
    HABITS,
    SPEC,
    SimulatedAgent,
    SimulatedJudge,
    SimulatedWriter,
    World,
)
from groundrule.prompt_learning.trial import Trial
from groundrule.rewards.judges import Judge

WORLD = World(seed=1)
TRAIN, TESTS = WORLD.tasks[:8], WORLD.tasks[8:16]
CITE, DATES = (habit.lesson for habit in HABITS[:2])
ANY_ANSWER = "Any answer is fine as long as it is friendly."


def trial_of(scorer=None, attempts=1, agent=None):
    judge = scorer or SimulatedJudge(WORLD)
    return Trial(SPEC, agent or SimulatedAgent(WORLD), Policy("", "simulated", 0), judge, attempts=attempts)


def learn(client, *, budget=100, trial=None, **more):
    reflector = Reflector([Judge(client, "writer")])
    more = {"check_contradictions": False, **more}
    return learn_with_gepa(trial or trial_of(), reflector, TRAIN, TESTS, budget=budget, **more)


def listed(*lessons):
    return "\n".join(["```", *lessons, "```"])


def adapter_of(**more):
    """An adapter whose bridge runs what it is given at once; for tests without a running loop."""
    return GEPAAdapter(trial_of(**more), Playbook(), asyncio.run)


class Silent:
    """A judge that scores nothing."""

    async def score(self, group):
        return Scores([Score(value=None, reason="down") for _ in group])


async def test_it_finds_lessons_that_help():
    found = await learn(SimulatedWriter(WORLD), budget=300)
    assert WORLD.value(found.playbook.below(SPEC)) > WORLD.value(SPEC) + 0.1
    assert set(found.gains) == {task.id for task in TESTS}


async def test_it_stops_soon_after_its_budget_and_counts_what_was_really_answered():
    agent = SimulatedAgent(WORLD)
    found = await learn(SimulatedWriter(WORLD), budget=60, trial=trial_of(agent=agent))
    assert found.rollouts == agent.answers
    assert 60 <= found.rollouts < 60 + 3 + 3 + len(TESTS)


async def test_the_same_seed_finds_the_same():
    first, second = [await learn(SimulatedWriter(WORLD), seed=5) for _ in range(2)]
    assert (first.playbook, first.gains, first.rollouts) == (second.playbook, second.gains, second.rollouts)


async def test_a_writer_without_ideas_ends_the_search_though_nothing_is_answered_any_more():
    found = await learn(ScriptedClient([listed()], repeat_last=True), budget=40)
    assert (found.playbook, found.candidates) == (Playbook(), 1)


async def test_lessons_that_lower_the_bar_never_reach_the_agent():
    prompts = []
    inner = SimulatedAgent(WORLD)

    async def agent(policy, scenario):
        prompts.append(policy.system_prompt)
        return await inner(policy, scenario)

    client = ScriptedClient([listed(CITE, ANY_ANSWER)], repeat_last=True)
    found = await learn(client, trial=trial_of(agent=agent), budget=40)
    assert not any(ANY_ANSWER in prompt for prompt in prompts)
    assert [text for text, _ in found.refused] == [ANY_ANSWER]


async def test_it_goes_on_from_a_playbook_whose_lessons_keep_their_ids():
    start = Playbook((Lesson("L7", CITE, helpful=4),))
    client = ScriptedClient([listed(CITE, DATES)], repeat_last=True)
    found = await learn(client, start=start, ids=LessonIds(7), budget=40)
    assert found.playbook.lessons == (start.lessons[0], Lesson("L8", DATES))


async def test_the_best_so_far_is_told_with_the_rollouts_it_took():
    told = []
    found = await learn(
        SimulatedWriter(WORLD), on_better=lambda playbook, rollouts: told.append((playbook, rollouts))
    )
    assert told[0] == (Playbook(), 0)
    assert [one.text for one in told[-1][0].lessons] == [one.text for one in found.playbook.lessons]


async def test_the_error_of_a_writer_that_is_down_comes_through():
    with pytest.raises(JudgeError, match="no line"):
        await learn(ScriptedClient([LlmError("no line")]))


async def test_a_search_that_is_cancelled_ends_its_thread():
    class Hanging:
        async def __call__(self, policy, scenario):
            await asyncio.sleep(60)

    task = asyncio.ensure_future(learn(ScriptedClient([]), trial=trial_of(agent=Hanging())))
    await asyncio.sleep(0.3)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(task, 5)


async def test_without_the_package_it_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(
        "groundrule.prompt_learning.gepa_adapter.find_spec",
        lambda name: None if name == "gepa" else importlib.util.find_spec(name),
    )
    with pytest.raises(ConfigError, match=r"pip install 'groundrule\[gepa\]'"):
        await learn(ScriptedClient([]))


async def test_an_interrupted_search_goes_on_in_its_folder(tmp_path):
    first = await learn(SimulatedWriter(WORLD), budget=30, folder=tmp_path)
    second = await learn(SimulatedWriter(WORLD), budget=80, folder=tmp_path)
    assert second.rollouts >= 80 > first.rollouts
    assert second.candidates >= first.candidates


def test_a_candidate_is_scored_by_its_gain_on_the_start_in_one_group():
    adapter = adapter_of(attempts=2)
    batch = adapter.evaluate(TESTS, {COMPONENT: f"{CITE}\n{DATES}"})
    assert {len(group) for group in adapter.groups} == {4}
    assert sum(batch.scores) / len(batch.scores) > 0.05


def test_the_start_is_worth_nothing_and_costs_nothing_until_it_is_reflected_on():
    adapter = adapter_of()
    assert (adapter.evaluate(TESTS, {COMPONENT: ""}).scores, adapter.agent.answers) == ([0.0] * 8, 0)
    batch = adapter.evaluate(TESTS[:3], {COMPONENT: ""}, capture_traces=True)
    assert (batch.scores, adapter.agent.answers) == ([0.0] * 3, 3)
    assert all(trace.remark for trace in batch.trajectories)


def test_a_candidate_is_not_judged_twice_on_a_scenario():
    adapter = adapter_of()
    first = adapter.evaluate(TESTS[:4], {COMPONENT: CITE})
    again = adapter.evaluate(TESTS[:5], {COMPONENT: CITE})
    assert (again.scores[:4], adapter.agent.answers, len(adapter.groups)) == (first.scores, 10, 5)


def test_where_the_judge_gives_no_score_the_gain_is_zero():
    batch = adapter_of(scorer=Silent()).evaluate(TESTS[:2], {COMPONENT: CITE}, capture_traces=True)
    assert (batch.scores, batch.trajectories[0].remark) == ([0.0, 0.0], "")


def test_what_is_reflected_on_is_task_answer_and_remark_each_on_one_line():
    record = record_of(Trace("How?\n## Feedback", "Like ```this```.", 'No "page" named.', 0.125))
    assert record == {
        "Inputs": '"How?\\n## Feedback"',
        "Generated Outputs": '"Like ```this```."',
        "Feedback": '"No \\"page\\" named."',
        "Score, compared with the first lessons": "+0.12",
    }


def test_the_prompt_has_the_whole_spec_and_both_places_that_gepa_fills():
    text = template("Be brief.\nBe correct. " + "x" * 2000)
    assert json.dumps("Be brief.\nBe correct. " + "x" * 2000) in text
    assert (text.count("<curr_param>"), text.count("<side_info>")) == (1, 1)


@pytest.mark.parametrize(
    ("reply", "lessons"),
    [
        ("Here:\n```text\n1. Say it.\n\n- Do it.\n```\nDone.", ["Say it.", "Do it."]),
        ("Say it.\nDo  it.", ["Say it.", "Do it."]),
        ("```\n```", []),
    ],
)
def test_a_list_is_read_with_and_without_marks(reply, lessons):
    assert read_list(ChatReply(reply)) == lessons


def test_a_list_that_was_cut_is_refused():
    with pytest.raises(JudgeReplyError):
        read_list(ChatReply("```\nSay it.", finish_reason="length"))


def test_text_becomes_a_playbook_and_known_lessons_are_found_again():
    known = Playbook((Lesson("L2", "Say it.", helpful=3),))
    texts = [lesson.text for lesson in playbook_of("Do it.\nSay it.").lessons]
    assert with_ids(texts, known, LessonIds(4)).lessons == (Lesson("L5", "Do it."), known.lessons[0])


async def test_a_remembered_answer_is_not_asked_for_again():
    agent = Remembered(SimulatedAgent(WORLD))
    policy = Policy("", "simulated", 0, system_prompt=SPEC, seed=1)
    first, again = [await agent(policy, TESTS[0]) for _ in range(2)]
    await agent(policy, TESTS[1])
    assert (first is again, agent.answers) == (True, 2)
