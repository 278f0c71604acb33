"""Whole rounds with a scripted reflection model, an agent that follows its lessons, and a judge that counts."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import pytest

from fakes import chat
from groundrule._util.digest import digest
from groundrule.algorithms.error_budget import ErrorBudget
from groundrule.data import Scenario, Score, Trajectory, TrajectoryGroup
from groundrule.data.messages import last_answer
from groundrule.data.protocols import Policy
from groundrule.errors import ConfigError, JudgeError, LlmError
from groundrule.llm import ScriptedClient
from groundrule.prompt_learning import PromptLearner
from groundrule.prompt_learning.edits import Edit
from groundrule.prompt_learning.playbook import Lesson, LessonIds, Playbook
from groundrule.prompt_learning.reflection import Reflector
from groundrule.prompt_learning.settings import PromptSettings
from groundrule.prompt_learning.state import LearnerState
from groundrule.prompt_learning.trial import Trial
from groundrule.prompt_learning.versions import Pool, Version
from groundrule.rewards.judges import Judge

SPEC = "You answer customers from the documents. Be correct."
CITE = "Name the page behind each statement."
DATES = "Write deadlines as full calendar dates."
STEPS = "Mention what comes next."
RUDE = "Use short, blunt phrases."
GREET = "Greet people by their first name."
THANK = "Thank people for writing in."
SLIGHT = "Prefer the active voice."
EFFECTS = {
    CITE: lambda i: 0.25,
    DATES: lambda i: 0.125,
    STEPS: lambda i: 0.25 if i % 2 else 0.0,
    RUDE: lambda i: -0.25,
    GREET: lambda i: 0.0,
    THANK: lambda i: 0.125,
    SLIGHT: lambda i: 1 / 128,
}
"""What a lesson adds to an answer's score, by the number of the scenario."""
COMPLAINT = "No page is named for the statement."
HELD_OUT = [Scenario(id=f"h{i}", question=f"Held-out question {i}?", split="held-out") for i in range(8)]
NO_CHECKS = PromptSettings(rounds=4, attempts=1, check_contradictions=False)
CHECKS = PromptSettings(rounds=4, attempts=1)
ONE_BY_ONE = NO_CHECKS.model_copy(update={"edits": 1})
LEVEL = 0.05 * 3 / (3 * 4)
"""Of the first test: four rounds of three edits, so three tests have half of alpha. The next two have 0.0075 and
0.005."""


@dataclass
class World:
    """An agent whose answer says which lessons it follows, and a scorer that knows what they are worth."""

    prompts: list[str] = field(default_factory=list)

    async def rollout(self, policy, scenario):
        self.prompts.append(policy.system_prompt)
        follows = [str(n) for n, lesson in enumerate(EFFECTS) if lesson in policy.system_prompt]
        turns = chat(f"{scenario.id[1:]} {''.join(follows)}", system=policy.system_prompt)
        return Trajectory(messages_and_choices=turns)

    async def score(self, group):
        return [Score(value=self._worth(*last_answer(t.messages()).split(" "))) for t in group]

    def _worth(self, number, follows):
        effects = list(EFFECTS.values())
        return 0.5 + sum(effects[int(n)](int(number)) for n in follows)


def edit(text, action="add", lesson=None, evidence=()):
    return {"action": action, "lesson": lesson, "text": text, "rationale": "Why.", "evidence": list(evidence)}


def edits(*given):
    return {"edits": [edit(one) if isinstance(one, str) else one for one in given]}


def made(*replies, settings=NO_CHECKS, world=None, scenarios=HELD_OUT, **more):
    """A learner, and the client that its reflection model answers through."""
    world, client = world or World(), ScriptedClient(replies)
    trial = Trial(SPEC, world.rollout, Policy("", "agent", 0), world, attempts=settings.attempts)
    return PromptLearner(trial, Reflector([Judge(client, "writer")]), scenarios, settings, **more), client


def groups_under(prompt, *complaints):
    """Scored groups, one for each complaint about its worst answer."""
    return [
        TrajectoryGroup(
            [
                Trajectory(
                    messages_and_choices=chat(answer, system=prompt, question=f"Training question {number}?"),
                    reward=reward,
                    metadata={"prompt": digest(prompt)},
                    logs=[f"RULER explanation: {said}"],
                )
                for answer, reward, said in [
                    ("See page 4.", 0.75, "Names it."),
                    ("So it is.", 0.25, complaint),
                ]
            ],
            scenario_id=f"t{number}",
        )
        for number, complaint in enumerate(complaints, start=1)
    ]


async def a_round(learner):
    return await learner.update(groups_under(learner.parent_prompt, COMPLAINT, COMPLAINT))


def with_state(learner, *lessons, parent=0, **more):
    """The learner, going on from a playbook with these lessons."""
    pool = Pool([Version(0, Playbook(lessons))])
    learner.state = LearnerState(learner.state.budget, pool, LessonIds(len(lessons)), parent=parent, **more)
    return learner


def outcomes(learner):
    return [(one["edit"]["text"], one["outcome"]) for one in learner.record["tested"]]


def refusals(learner):
    return [(one["edit"]["text"], one["reason"]) for one in learner.record["refused"]]


def carried(learner):
    return [one.edit.text for one in learner.state.carried]


async def test_a_lesson_that_helps_becomes_part_of_the_prompt():
    learner, _ = made(edits(CITE))
    update = await a_round(learner)
    assert update.policy.system_prompt == f"{SPEC}\n\nLessons from earlier work:\n1. {CITE}"
    assert update.policy.version == 1


async def test_an_accepted_lesson_has_the_counts_of_its_test():
    learner, _ = made(edits(CITE))
    await a_round(learner)
    assert learner.state.pool.head.playbook.lessons == (Lesson("L1", CITE, helpful=8, harmful=0),)


async def test_a_version_says_what_it_comes_from():
    learner, _ = made(edits(edit(CITE, evidence=["r1g2"])))
    await a_round(learner)
    head = learner.state.pool.head
    assert (head.parent, head.how, head.round, head.lesson) == (0, "test", 1, "L1")
    assert head.edit == Edit("add", CITE, None, "Why.", ("r1g2",))
    assert [(one["id"], one["worst_explanation"]) for one in head.evidence] == [("r1g2", COMPLAINT)]


async def test_a_version_says_how_its_test_went():
    learner, _ = made(edits(CITE))
    await a_round(learner)
    head = learner.state.pool.head
    assert head.test["outcome"] == "accepted"
    assert [(look["scenarios"], look["p"]) for look in head.test["looks"]] == [(8, 1 / 256)]
    assert head.test["looks"][0]["level"] == pytest.approx(LEVEL)
    assert head.gains == {f"h{i}": 0.25 for i in range(8)}


async def test_all_lessons_that_help_are_kept_the_best_first():
    learner, _ = made(edits(DATES, GREET, CITE))
    update = await a_round(learner)
    assert update.policy.system_prompt == f"{SPEC}\n\nLessons from earlier work:\n1. {CITE}\n2. {DATES}"


async def test_each_lesson_that_is_kept_makes_a_version_after_the_one_before():
    learner, _ = made(edits(DATES, CITE))
    await a_round(learner)
    assert [(one.number, one.parent, one.how, one.edit.text) for one in learner.state.pool.versions[1:]] == [
        (1, 0, "test", CITE),
        (2, 1, "same test", DATES),
    ]


async def test_a_change_an_addition_and_a_removal_are_kept_together():
    proposed = edits(edit(CITE, "change", "L1"), edit("", "remove", "L2"), DATES)
    learner, _ = made(proposed)
    await a_round(with_state(learner, Lesson("L1", GREET), Lesson("L2", RUDE), Lesson("L3", THANK)))
    assert [one.text for one in learner.state.pool.head.playbook.lessons] == [CITE, THANK, DATES]


async def test_versions_of_the_same_test_have_their_own_evidence():
    learner, _ = made(edits(edit(DATES, evidence=["r1g1"]), edit(CITE, evidence=["r1g2"])))
    await a_round(learner)
    assert [one.evidence[0]["id"] for one in learner.state.pool.versions[1:]] == ["r1g2", "r1g1"]


async def test_versions_of_the_same_test_have_their_own_results():
    learner, _ = made(edits(DATES, CITE))
    await a_round(learner)
    looks = [one.test["looks"][0] for one in learner.state.pool.versions[1:]]
    assert [(look["mean"], look["level"]) for look in looks] == [
        (0.25, pytest.approx(0.0075)),
        (0.125, pytest.approx(LEVEL)),
    ]


async def test_gains_of_versions_of_the_same_test_add_up():
    learner, _ = made(edits(DATES, CITE))
    await a_round(learner)
    assert [one.gain for one in learner.state.pool.versions] == [0.0, 0.25, 0.375]


async def test_lessons_that_are_kept_together_have_the_counts_of_their_tests():
    learner, _ = made(edits(DATES, CITE))
    await a_round(learner)
    assert learner.state.pool.head.playbook.lessons == (Lesson("L2", CITE, 8), Lesson("L1", DATES, 8))


async def test_all_that_is_kept_is_counted():
    learner, _ = made(edits(DATES, GREET, CITE))
    update = await a_round(learner)
    assert (learner.record["accepted"], update.metrics["prompt/accepted"]) == ([1, 2], 2)


async def test_the_next_round_starts_from_all_that_is_kept():
    learner, _ = made(edits(DATES, CITE))
    await a_round(learner)
    assert (learner.state.parent, carried(learner)) == (2, [])


def changing_one_lesson(*later):
    """A learner that is about to test two better forms of its only lesson, of which the second is the best."""
    learner, _ = made(edits(edit(DATES, "change", "L1"), edit(CITE, "change", "L1")), *later)
    return with_state(learner, Lesson("L1", GREET))


async def test_what_passed_and_cannot_be_kept_beside_a_better_one_stays_open():
    learner = changing_one_lesson()
    await a_round(learner)
    assert outcomes(learner) == [(DATES, "open"), (CITE, "accepted")]
    assert learner.record["tested"][0]["reason"] == "another was better"


async def test_what_stays_open_makes_no_version():
    learner = changing_one_lesson()
    await a_round(learner)
    assert learner.record["accepted"] == [1]
    assert [lesson.text for lesson in learner.state.pool.head.playbook.lessons] == [CITE]


async def test_what_stays_open_is_tested_first_in_the_next_round():
    learner = changing_one_lesson(edits(THANK))
    await a_round(learner)
    assert (carried(learner), learner.state.tried) == ([DATES], [])
    await a_round(learner)
    assert [text for text, _ in outcomes(learner)] == [DATES, THANK]


async def test_of_two_lessons_that_say_the_same_the_better_one_is_kept(monkeypatch):
    again = "Name the page behind each single statement."
    monkeypatch.setitem(EFFECTS, again, lambda i: 0.125)
    learner, _ = made(edits(again, CITE))
    await a_round(learner)
    assert outcomes(learner) == [(again, "open"), (CITE, "accepted")]


class Facts:
    """A guard that falls by a sixteenth with each lesson."""

    async def score(self, group):
        return [Score(value=1 - len(last_answer(t.messages()).split(" ")[1]) / 16) for t in group]


@pytest.mark.parametrize(("margin", "kept"), [(0.125, [CITE, DATES]), (0.0625, [CITE])])
async def test_lessons_are_kept_together_as_far_as_they_keep_a_guard_together(margin, kept):
    learner, _ = made(edits(DATES, CITE), settings=NO_CHECKS.model_copy(update={"guard_margin": margin}))
    learner.trial.guards = {"facts": Facts()}
    await a_round(learner)
    assert [lesson.text for lesson in learner.state.pool.head.playbook.lessons] == kept


async def test_the_next_round_starts_from_the_accepted_version():
    learner, _ = made(edits(CITE), edits(DATES))
    await a_round(learner)
    await a_round(learner)
    assert [lesson.text for lesson in learner.state.pool.head.playbook.lessons] == [CITE, DATES]
    assert learner.state.pool.head.parent == 1


async def test_tests_hold_new_prompts_against_the_one_that_they_change():
    world = World()
    learner, _ = made(edits(CITE), edits(DATES), world=world)
    await a_round(learner)
    world.prompts.clear()
    parent = learner.parent_prompt
    await a_round(learner)
    assert set(world.prompts) == {parent, f"{parent}\n2. {DATES}"}


async def test_a_lesson_that_does_not_help_is_not_kept():
    learner, _ = made(edits(GREET))
    await a_round(learner)
    assert (outcomes(learner), learner.policy.system_prompt) == ([(GREET, "futile")], SPEC)


async def test_a_lesson_that_failed_once_is_tested_again_where_it_is_proposed_again():
    learner, _ = made(edits(GREET), edits(GREET))
    await a_round(learner)
    await a_round(learner)
    assert (outcomes(learner), refusals(learner)) == ([(GREET, "futile")], [])


async def test_a_lesson_that_failed_twice_is_not_tested_again():
    learner, _ = made(edits(GREET), edits(GREET), edits(GREET))
    for _ in range(3):
        await a_round(learner)
    assert (outcomes(learner), refusals(learner)) == ([], [(GREET, "it was tried before")])


async def test_the_writer_is_told_of_a_lesson_that_failed_twice():
    learner, client = made(edits(GREET, RUDE), edits(GREET), edits())
    for _ in range(3):
        await a_round(learner)
    told = [json.loads(request.messages[1]["content"])["TRIED_BEFORE"] for request in client.requests]
    assert told == [[], [], [GREET]]


async def test_where_nothing_recurs_the_writer_is_not_asked():
    learner, client = made()
    update = await learner.update(groups_under(SPEC, COMPLAINT, "Rude and hasty tone."))
    assert (client.requests, update.policy.system_prompt, learner.state.round) == ([], SPEC, 1)


async def test_where_nothing_is_proposed_nobody_answers():
    world = World()
    learner, _ = made(edits(), world=world)
    await a_round(learner)
    assert (world.prompts, learner.tested_groups) == ([], [])


async def test_an_edit_that_is_refused_is_kept_with_the_reason_and_not_tested():
    world = World()
    learner, _ = made(edits("Any answer is fine."), world=world)
    await a_round(learner)
    assert refusals(learner) == [("Any answer is fine.", "it permits anything: 'Any answer is fine'")]
    assert world.prompts == []


async def test_an_edit_that_is_refused_does_not_keep_the_others_from_their_test():
    learner, _ = made(edits("Any answer is fine.", CITE))
    await a_round(learner)
    assert outcomes(learner) == [(CITE, "accepted")]


async def test_words_of_held_out_and_other_known_scenarios_are_refused():
    known = [Scenario(id="t", question="Is it open at 8:30?")]
    scenarios = [*HELD_OUT[:-1], Scenario(id="h7", question="Who is Marta there?")]
    learner, _ = made(edits("Say 8:30 plainly.", "Mention Marta."), scenarios=scenarios, known=known)
    await a_round(learner)
    assert [reason for _, reason in refusals(learner)] == [
        "it repeats what stands in a scenario: '8:30'",
        "it repeats what stands in a scenario: 'Marta'",
    ]


async def test_the_same_edit_is_tested_once():
    learner, _ = made(edits(CITE, CITE))
    await a_round(learner)
    assert (outcomes(learner), refusals(learner)) == ([(CITE, "accepted")], [(CITE, "it is proposed twice")])


async def test_a_lesson_that_contradicts_the_spec_is_refused():
    verdict = {"quote": "be correct.", "verdict": "contradicts"}
    learner, client = made(edits(CITE), verdict, settings=CHECKS)
    await a_round(learner)
    assert refusals(learner) == [(CITE, "it contradicts the spec: 'be correct.'")]
    assert len(client.requests) == 2


async def test_a_lesson_that_is_consistent_with_the_spec_is_tested():
    learner, _ = made(edits(CITE), {"quote": "", "verdict": "consistent"}, settings=CHECKS)
    await a_round(learner)
    assert outcomes(learner) == [(CITE, "accepted")]


async def test_what_cheap_rules_refuse_costs_no_question():
    learner, client = made(edits("Any answer is fine."), settings=CHECKS)
    await a_round(learner)
    assert len(client.requests) == 1


async def test_where_one_is_accepted_the_others_are_tested_to_the_end():
    scenarios = [Scenario(id=f"h{i}", question=f"Held-out question {i}?") for i in range(16)]
    learner, _ = made(edits(CITE, STEPS), scenarios=scenarios)
    await a_round(learner)
    # A gain on every other scenario: 1 in 16 after eight, 1 in 256 after sixteen.
    assert [(one["outcome"], len(one["differences"])) for one in learner.record["tested"]] == [
        ("accepted", 8),
        ("accepted", 16),
    ]


async def test_a_carried_edit_keeps_its_evidence():
    learner, _ = made(edits(GREET, edit(CITE, evidence=["r1g1"])), edits(), settings=ONE_BY_ONE)
    await a_round(learner)
    await a_round(learner)
    assert [one["id"] for one in learner.state.pool.head.evidence] == ["r1g1"]


async def test_edits_for_which_a_round_has_no_place_wait_for_the_next():
    learner, _ = made(edits(GREET, CITE), edits(), settings=ONE_BY_ONE)
    await a_round(learner)
    assert (outcomes(learner), carried(learner)) == ([(GREET, "futile")], [CITE])
    await a_round(learner)
    assert outcomes(learner) == [(CITE, "accepted")]


async def test_what_was_carried_is_not_tested_twice_where_it_is_proposed_again():
    learner, _ = made(edits(GREET, CITE), edits(CITE), settings=ONE_BY_ONE)
    await a_round(learner)
    await a_round(learner)
    assert (outcomes(learner), refusals(learner)) == ([(CITE, "accepted")], [(CITE, "it is proposed twice")])


HALF = {"PARTLY": "Offer to call people back."}


async def test_what_is_nearly_shown_is_tested_three_times_at_most(monkeypatch):
    monkeypatch.setitem(EFFECTS, HALF["PARTLY"], lambda i: 0.25 if i < 5 else 0.0)  # 1 in 32 each time
    learner, _ = made(edits(HALF["PARTLY"]), edits(), edits(), edits())
    for tests in (1, 2):
        await a_round(learner)
        assert outcomes(learner) == [(HALF["PARTLY"], "not shown")]
        assert [one.tests for one in learner.state.carried] == [tests]
    await a_round(learner)
    assert (carried(learner), learner.state.tried) == ([], [HALF["PARTLY"]])


async def test_a_lesson_that_did_more_harm_than_good_is_proposed_for_removal_without_the_writer():
    learner, client = made()
    with_state(learner, Lesson("L1", RUDE, helpful=1, harmful=2), Lesson("L2", CITE, helpful=3))
    await learner.update([])
    assert client.requests == []
    assert [one["edit"]["lesson"] for one in learner.record["tested"]] == ["L1"]
    assert [lesson.text for lesson in learner.state.pool.head.playbook.lessons] == [CITE]


async def test_a_removal_that_is_not_accepted_speaks_for_the_lesson():
    learner, _ = made(edits(edit("", "remove", "L1")))
    await a_round(with_state(learner, Lesson("L1", CITE, helpful=1)))
    assert learner.state.pool.head.playbook.lessons == (Lesson("L1", CITE, helpful=9),)


async def test_a_removal_that_is_accepted_though_a_little_worse_is_shipped():
    learner, _ = made(edits(edit("", "remove", "L1")))
    await a_round(with_state(learner, Lesson("L1", SLIGHT, helpful=1)))
    assert learner.record["tested"][0]["looks"][0]["mean"] == -1 / 128
    assert learner.policy.system_prompt == SPEC


def gained(learner, text, **gains):
    """The learner, going on from a version with one lesson that gained so much."""
    version = Version(1, Playbook((Lesson("L1", text),)), 0, "test", gains=gains)
    learner.state.pool, learner.state.parent = Pool([Version(0, Playbook()), version], [0, 1]), 1
    return learner


async def test_a_removal_that_is_a_little_worse_keeps_the_gains_of_its_parent():
    learner, _ = made(edits(edit("", "remove", "L1")))
    await a_round(gained(learner, SLIGHT, h0=0.5, h1=0.25))
    assert (learner.state.pool.head.number, learner.state.pool.head.gains) == (2, {"h0": 0.5, "h1": 0.25})


async def test_a_removal_that_is_better_gains_what_its_test_showed():
    learner, _ = made(edits(edit("", "remove", "L1")))
    await a_round(with_state(learner, Lesson("L1", RUDE, helpful=1)))
    assert learner.state.pool.head.gains == {f"h{i}": 0.25 for i in range(8)}


async def test_a_removal_is_tested_once_though_it_is_proposed_by_both():
    learner, _ = made(edits(edit("", "remove", "L1")))
    await a_round(with_state(learner, Lesson("L1", CITE, helpful=1, harmful=2)))
    assert len(learner.record["tested"]) == 1
    assert refusals(learner) == [("", "it is proposed twice")]


async def test_what_a_round_shows_of_one_lesson_holds_for_the_version_that_another_one_makes():
    learner, _ = made(edits(edit("", "remove", "L1"), DATES))
    await a_round(with_state(learner, Lesson("L1", CITE, helpful=1)))
    assert learner.state.pool.head.playbook.lessons == (Lesson("L1", CITE, 9), Lesson("L2", DATES, 8))


async def test_a_changed_lesson_takes_the_place_of_the_old_one():
    learner, _ = made(edits(edit(CITE, "change", "L1")))
    await a_round(with_state(learner, Lesson("L1", GREET, helpful=4)))
    assert learner.state.pool.head.playbook.lessons == (Lesson("L1", CITE, helpful=8),)


async def test_an_edit_that_helped_beside_another_prompt_is_tested_beside_the_best_one():
    learner, _ = made(edits(DATES))
    cite = Version(1, Playbook((Lesson("L1", CITE),)), 0, "test", gains={f"h{i}": 0.25 for i in range(8)})
    greet = Version(2, Playbook((Lesson("L2", GREET),)), 0, "test", gains={"h0": 0.0})
    learner.state.pool, learner.state.parent = Pool([Version(0, Playbook()), cite, greet], [0, 1, 2]), 2
    await a_round(learner)
    assert (learner.record["accepted"], learner.state.pool.head.number, learner.state.parent) == ([3], 1, 1)
    assert carried(learner) == [DATES]


async def test_all_edits_that_helped_beside_another_prompt_are_tested_beside_the_best_one():
    learner, _ = made(edits(DATES, GREET, THANK))
    cite = Version(1, Playbook((Lesson("L1", CITE),)), 0, "test", gains={"h0": 0.5})
    slight = Version(2, Playbook((Lesson("L2", SLIGHT),)), 0, "test", gains={"h0": 0.0})
    learner.state.pool, learner.state.parent = Pool([Version(0, Playbook()), cite, slight], [0, 1, 2]), 2
    await a_round(learner)
    assert (learner.record["accepted"], learner.state.parent, carried(learner)) == ([3, 4], 1, [DATES, THANK])


async def test_an_acceptance_hands_its_level_on():
    learner, _ = made(edits(CITE), edits())
    await a_round(learner)
    assert (learner.state.budget.done, learner.state.budget.handed_on) == (1, pytest.approx(LEVEL))


async def test_every_candidate_uses_up_a_test():
    learner, _ = made(edits(GREET, RUDE, CITE))
    await a_round(learner)
    # 0.05 x 3 / (5 x 6), the share of the third
    assert (learner.state.budget.done, learner.state.budget.handed_on) == (3, pytest.approx(0.005))


async def test_an_acceptance_hands_its_level_on_though_another_test_beside_it_fails():
    learner, _ = made(edits(CITE, GREET))
    await a_round(learner)
    assert (learner.state.budget.done, learner.state.budget.handed_on) == (2, pytest.approx(LEVEL))


async def test_two_acceptances_hand_both_levels_on():
    learner, _ = made(edits(DATES, GREET, CITE))
    await a_round(learner)
    assert learner.state.budget.handed_on == pytest.approx(LEVEL + 0.005)


async def test_what_passed_and_stays_open_hands_its_level_on():
    learner = changing_one_lesson()
    await a_round(learner)
    assert learner.state.budget.handed_on == pytest.approx(LEVEL + 0.0075)


async def test_what_was_handed_on_goes_to_the_first_test_of_the_next_round():
    learner, _ = made(edits(CITE), edits(GREET, RUDE))
    await a_round(learner)
    await a_round(learner)
    levels = [one["looks"][0]["level"] for one in learner.record["tested"]]
    assert levels == pytest.approx([LEVEL + 0.0075, 0.005])


async def test_late_tests_ask_for_more_than_eight_scenarios_can_show():
    learner, _ = made(edits(CITE))
    learner.state.budget = ErrorBudget(
        0.05, 6, done=30
    )  # 0.05 x 6 / (36 x 37) = 0.0002, and 1 / 256 = 0.0039
    await a_round(learner)
    assert outcomes(learner) == [(CITE, "not shown")]


async def test_groups_of_another_prompt_are_refused():
    learner, _ = made()
    with pytest.raises(
        ConfigError, match=r"starts from version 0 .* policy\.system_prompt = learner\.parent_prompt"
    ):
        await learner.update(groups_under("Another prompt.", COMPLAINT))


async def test_groups_of_the_version_before_are_refused():
    learner, _ = made(edits(CITE))
    await a_round(learner)
    with pytest.raises(ConfigError, match="this round starts from version 1"):
        await learner.update(groups_under(SPEC, COMPLAINT, COMPLAINT))


async def test_groups_that_do_not_say_their_prompt_are_taken():
    learner, _ = made(edits(CITE))
    groups = groups_under(SPEC, COMPLAINT, COMPLAINT)
    for member in (member for group in groups for member in group):
        member.metadata.clear()
    await learner.update(groups)
    assert outcomes(learner) == [(CITE, "accepted")]


@pytest.mark.parametrize(
    "replies",
    [[LlmError("down")], ["nonsense", "nonsense"], [edits(edit(CITE, evidence=["g9"]))] * 2],
    ids=["no answer", "no JSON", "unknown evidence"],
)
async def test_a_writer_without_a_usable_reply_leaves_everything_as_it_was(replies):
    learner, _ = made(*replies)
    before = learner.state.to_dict()
    with pytest.raises(JudgeError):
        await a_round(learner)
    assert (learner.state.to_dict(), learner.record) == (before, {})


async def test_a_check_that_fails_leaves_everything_as_it_was():
    learner, _ = made(edits(CITE), LlmError("down"), settings=CHECKS)
    before = learner.state.to_dict()
    with pytest.raises(JudgeError, match="down"):
        await a_round(learner)
    assert learner.state.to_dict() == before


async def test_a_round_can_be_had_again_after_an_error():
    learner, _ = made(LlmError("down"), edits(CITE))
    with pytest.raises(JudgeError):
        await a_round(learner)
    await a_round(learner)
    assert (learner.state.round, outcomes(learner)) == (1, [(CITE, "accepted")])


SECOND, THIRD = edits(edit(STEPS, evidence=["r2g1"])), edits(edit(GREET, "change", "L2"))


async def test_a_learner_goes_on_from_a_file_as_it_would_have_gone_on():
    straight, _ = made(edits(DATES, CITE), SECOND, THIRD, settings=ONE_BY_ONE, seed=5)
    for _ in range(3):
        await a_round(straight)
    first, _ = made(edits(DATES, CITE), settings=ONE_BY_ONE, seed=5)
    await a_round(first)
    kept = json.loads(json.dumps(first.state.to_dict()))
    resumed, _ = made(SECOND, THIRD, settings=ONE_BY_ONE, seed=5, state=LearnerState.from_dict(kept))
    for _ in range(2):
        await a_round(resumed)
    assert json.dumps(resumed.state.to_dict()) == json.dumps(straight.state.to_dict())
    assert resumed.record == straight.record


async def test_a_state_survives_a_file():
    settings = NO_CHECKS.model_copy(update={"edits": 2})
    learner, _ = made(edits(edit(DATES, evidence=["r1g1"]), GREET, CITE), settings=settings)
    await a_round(learner)
    record = json.loads(json.dumps(learner.state.to_dict()))
    assert json.loads(json.dumps(LearnerState.from_dict(record).to_dict())) == record


async def test_a_round_is_recorded():
    learner, _ = made(edits(edit(CITE, evidence=["r1g1"])))
    await a_round(learner)
    record = learner.record
    assert (record["round"], record["parent"], record["accepted"]) == (1, 0, [1])
    assert [one["id"] for one in record["contrasts"]] == ["r1g1", "r1g2"]
    assert record["complaints"] == [{"text": COMPLAINT, "contrasts": ["r1g1", "r1g2"]}]
    assert record["tested"][0]["differences"] == {f"h{i}": 0.25 for i in range(8)}


async def test_a_record_is_plain_data():
    learner, _ = made(edits(CITE, "Any answer is fine."))
    await a_round(learner)
    assert json.loads(json.dumps(learner.record))["accepted"] == [1]


async def test_the_judged_groups_of_a_test_are_kept():
    learner, _ = made(edits(CITE))
    await a_round(learner)
    assert sorted(group.scenario_id for group in learner.tested_groups) == [f"h{i}" for i in range(8)]


async def test_a_round_is_measured():
    learner, _ = made(edits(CITE, "Any answer is fine."))
    metrics = (await a_round(learner)).metrics
    assert metrics == {
        "prompt/contrasts": 2,
        "prompt/complaints": 1,
        "prompt/unreliable_groups": 0,
        "prompt/level_groups": 0,
        "prompt/refused": 1,
        "prompt/tested": 1,
        "prompt/accepted": 1,
        "prompt/lessons": 1,
        "prompt/version": 1,
        "prompt/gain": 0.25,
        "prompt/pool": 2,
        "prompt/level": pytest.approx(LEVEL + 0.0075),
        "prompt/rollouts": 16,
    }


async def test_tests_of_different_rounds_have_different_seeds():
    seeds = []

    async def rollout(policy, scenario):
        seeds.append((learner.state.round, policy.seed))
        return await World().rollout(policy, scenario)

    learner, _ = made(edits(GREET), edits(RUDE))
    learner.trial.rollout = rollout
    await a_round(learner)
    await a_round(learner)
    assert not {s for number, s in seeds if number == 0} & {s for number, s in seeds if number == 1}


def test_a_learner_without_scenarios_for_tests_is_refused():
    with pytest.raises(ConfigError, match="no scenarios to test a prompt on; hold some out"):
        made(scenarios=[])


def test_a_new_learner_starts_from_the_spec():
    learner, _ = made()
    assert (learner.parent_prompt, learner.policy.system_prompt, learner.spec) == (SPEC, SPEC, SPEC)
