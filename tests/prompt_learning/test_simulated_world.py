"""What is true in the simulated world, and how those in it behave: the ground on which methods are compared."""

from __future__ import annotations

import json
import random
from statistics import fmean, pstdev

import pytest

from groundrule.data.messages import last_answer, system_prompt_of
from groundrule.data.protocols import ChatRequest, Policy
from groundrule.prompt_learning.edits import Edit
from groundrule.prompt_learning.gepa_reflection import Trace, read_list, record_of, template
from groundrule.prompt_learning.lint import Leaks, refusal_of
from groundrule.prompt_learning.playbook import Lesson, Playbook
from groundrule.prompt_learning.rewriting import read_lessons
from groundrule.prompt_learning.simulated import (
    HABITS,
    SPEC,
    SimulatedAgent,
    SimulatedJudge,
    SimulatedWriter,
    World,
)
from groundrule.prompt_learning.trial import Trial

WORLD = World(seed=2)
BY_KIND = {
    kind: [habit.lesson for habit in HABITS if habit.kind == kind]
    for kind in ("helpful", "useless", "harmful", "lowering")
}


def below(*lessons):
    return Playbook(tuple(Lesson(str(n), text) for n, text in enumerate(lessons))).below(SPEC)


def trial_of(world=WORLD):
    return Trial(SPEC, SimulatedAgent(world), Policy("", "simulated", 0), SimulatedJudge(world))


def asked_for(*complaints, lessons=(), playbook=False):
    record = {
        "LESSONS": [{"text": text} for text in lessons],
        "COMPLAINTS": [{"complaint": text, "examples": ["g1"]} for text in complaints],
        "TRIED_BEFORE": [],
        **({"PLAYBOOK": {}} if playbook else {}),
    }
    messages = ({"role": "system", "content": "Write."}, {"role": "user", "content": json.dumps(record)})
    return ChatRequest("writer", messages, {"seed": 1})


def test_there_are_five_lessons_that_help_and_nine_that_do_not():
    assert [len(BY_KIND[kind]) for kind in BY_KIND] == [5, 4, 3, 2]


@pytest.mark.parametrize("lesson", BY_KIND["helpful"])
def test_each_helpful_lesson_is_worth_what_the_world_says(lesson):
    gain = WORLD.value(below(lesson)) - WORLD.value(SPEC)
    assert 0.08 * 0.4 < gain < 0.16 * 0.8


@pytest.mark.parametrize("lesson", BY_KIND["harmful"] + BY_KIND["lowering"])
def test_harmful_and_lowering_lessons_make_answers_worse(lesson):
    assert WORLD.value(below(lesson)) < WORLD.value(SPEC) - 0.02


@pytest.mark.parametrize("lesson", BY_KIND["useless"])
def test_useless_lessons_change_nothing(lesson):
    assert WORLD.value(below(lesson)) == WORLD.value(SPEC)


def test_the_best_playbook_is_all_that_helps():
    assert WORLD.best_value() == WORLD.value(below(*BY_KIND["helpful"]))
    assert WORLD.best_value() > WORLD.value(below(*BY_KIND["helpful"], BY_KIND["harmful"][0]))


def test_worlds_of_other_seeds_differ_and_of_one_seed_agree():
    assert World(seed=2).best_value() == WORLD.best_value() != World(seed=3).best_value()


@pytest.mark.parametrize("lesson", [habit.lesson for habit in HABITS if habit.kind != "lowering"])
def test_the_lint_lets_every_lesson_through_that_does_not_lower_the_bar(lesson):
    assert refusal_of(Edit("add", lesson), Playbook(), SPEC, Leaks.of(WORLD.tasks, SPEC)) is None


@pytest.mark.parametrize("lesson", BY_KIND["lowering"])
def test_the_lint_keeps_out_those_that_lower_the_bar(lesson):
    assert refusal_of(Edit("add", lesson), Playbook(), SPEC, Leaks.of(WORLD.tasks, SPEC)) is not None


async def test_the_same_seed_gives_the_agent_the_same_luck_under_every_prompt():
    trial = trial_of()
    better = below(*BY_KIND["helpful"])
    [group] = await trial.groups([SPEC, better], WORLD.tasks[:1])
    hidden = [json.loads(last_answer(t.messages()))["quality"] for t in group]
    under = [system_prompt_of(t.messages()) == better for t in group]
    old, new = (
        [q for q, is_new in zip(hidden, under, strict=True) if is_new == side] for side in (False, True)
    )
    gaps = [b - a for a, b in zip(sorted(old), sorted(new), strict=True)]
    assert gaps[0] == pytest.approx(gaps[1])


async def test_the_judge_is_noisy_by_about_what_the_world_says():
    trial = trial_of()
    groups = await trial.groups([SPEC], WORLD.tasks)
    gaps = [
        t.reward - json.loads(last_answer(t.messages()))["quality"] - u.reward
        + json.loads(last_answer(u.messages()))["quality"]
        for t, u in groups
    ]  # fmt: skip
    assert pstdev(gaps) == pytest.approx(0.08 * 2**0.5, rel=0.25)


async def test_a_judge_who_is_shown_a_lowered_bar_scores_higher_and_under_the_spec_does_not():
    lowered = below(BY_KIND["lowering"][0])
    agent, judge = SimulatedAgent(WORLD), SimulatedJudge(WORLD)
    trial = Trial(SPEC, agent, Policy("", "simulated", 0), judge)
    under_spec = await trial.groups([SPEC, lowered], WORLD.tasks[:16])
    shown = [await judge.score(group) for group in under_spec]
    told = [
        (score.value - member.reward)
        for group, scores in zip(under_spec, shown, strict=True)
        for member, score in zip(group, scores, strict=True)
        if system_prompt_of(member.messages()) == lowered
    ]
    assert fmean(told) == pytest.approx(0.3)


def test_the_writer_is_right_about_seven_times_in_ten():
    writer, rng = SimulatedWriter(WORLD), random.Random(0)
    said = [writer.lesson_for(HABITS[0].complaint, rng) for _ in range(1000)]
    assert said.count(HABITS[0].lesson) / 1000 == pytest.approx(0.7, abs=0.05)
    assert set(said) - {HABITS[0].lesson} == {habit.lesson for habit in HABITS if habit.kind != "helpful"}


async def test_the_writer_proposes_an_edit_for_each_complaint():
    reply = await SimulatedWriter(WORLD, right=1.0).complete(
        asked_for(HABITS[0].complaint, HABITS[1].complaint)
    )
    edits = json.loads(reply.content)["edits"]
    assert [(edit["action"], edit["text"]) for edit in edits] == [("add", h.lesson) for h in HABITS[:2]]


async def test_a_whole_playbook_keeps_the_old_lessons():
    request = asked_for(HABITS[1].complaint, lessons=[HABITS[0].lesson], playbook=True)
    reply = await SimulatedWriter(WORLD, right=1.0).complete(request)
    assert read_lessons(reply) == [habit.lesson for habit in HABITS[:2]]


async def test_the_writer_reads_the_prompt_of_gepa_and_keeps_the_old_lessons():
    signature = pytest.importorskip("gepa.strategies.instruction_proposal").InstructionProposalSignature
    traces = [Trace(f"question {n}", "{}", HABITS[n].complaint, 0.0) for n in (1, 2)]
    prompt = signature.prompt_renderer(
        {
            "current_instruction_doc": HABITS[0].lesson,
            "dataset_with_feedback": [record_of(trace) for trace in traces],
            "prompt_template": template(SPEC),
        }
    )
    request = ChatRequest("writer", ({"role": "user", "content": prompt},), {})
    reply = await SimulatedWriter(WORLD, right=1.0).complete(request)
    assert read_list(reply) == [habit.lesson for habit in HABITS[:3]]
