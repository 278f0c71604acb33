"""A blind trial: the same seeds for every prompt, one judged group, and the spec as the only authority."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from fakes import KeywordJudge, chat, prompt_of
from groundrule._util.digest import digest
from groundrule.data import Scenario, Score, Trajectory, TrajectoryGroup
from groundrule.data.messages import last_answer, system_prompt_of
from groundrule.data.protocols import Policy
from groundrule.errors import ConfigError, GatherError
from groundrule.llm import ScriptedClient
from groundrule.prompt_learning.trial import Seen, Trial, seen
from groundrule.rewards import Ruler

SPEC = "Answer from the passage."
OLD = SPEC
NEW = f"{SPEC}\n\nLessons from earlier work:\n1. Cite the page."
THIRD = f"{SPEC}\n\nLessons from earlier work:\n1. Be brief."
ANSWERS = {OLD: "plain", NEW: "cited", THIRD: "short"}
WORTH = {"plain": 0.25, "cited": 0.75, "short": 0.5}
POLICY = Policy("http://localhost/v1", "agent", 3)


def scenario(name, **more):
    return Scenario(id=name, question=f"Question {name}?", **more)


@dataclass
class Agent:
    """Answers as its prompt says, and keeps what it was asked with; some attempts break."""

    broken: frozenset[tuple[str, str]] = frozenset()
    asked: list[tuple[str, str, int]] = field(default_factory=list)

    async def __call__(self, policy, scenario):
        self.asked.append((scenario.id, policy.system_prompt, policy.seed))
        if (scenario.id, policy.system_prompt) in self.broken:
            raise RuntimeError("the tool is down")
        turns = chat(ANSWERS[policy.system_prompt], system=policy.system_prompt, question=scenario.question)
        return Trajectory(messages_and_choices=turns, metadata={"agent": "a"})


@dataclass
class ByAnswer:
    """Scores an answer by its words; keeps the groups that it was shown."""

    worth: dict[str, float | None]
    shown: list[TrajectoryGroup] = field(default_factory=list)

    async def score(self, group):
        self.shown.append(group)
        values = [self.worth[last_answer(t.messages())] for t in group]
        return [Score.none("cannot tell") if v is None else Score(value=v) for v in values]


class Broken:
    async def score(self, group):
        raise RuntimeError("no judge today")


def trial(agent=None, scorer=None, **more):
    return Trial(SPEC, agent or Agent(), POLICY, scorer or ByAnswer(WORTH), **more)


async def one_group(*prompts, scenario_id="s1", seed=0, **more):
    (group,) = await trial(**more).groups(prompts or (OLD, NEW), [scenario(scenario_id)], seed)
    return group


def arms(group):
    return [t.metadata["prompt"] for t in group]


async def test_answers_under_both_prompts_stand_in_one_group():
    group = await one_group(attempts=3)
    assert (group.scenario_id, sorted(arms(group))) == ("s1", sorted([digest(OLD)] * 3 + [digest(NEW)] * 3))


async def test_every_scenario_has_its_group_in_the_order_given():
    groups = await trial().groups([OLD, NEW], [scenario("b"), scenario("a")], 0)
    assert [(group.scenario_id, len(group)) for group in groups] == [("b", 4), ("a", 4)]


async def test_answers_are_scored_by_the_scorer():
    group = await one_group()
    assert sorted((last_answer(t.messages()), t.reward) for t in group) == [
        ("cited", 0.75),
        ("cited", 0.75),
        ("plain", 0.25),
        ("plain", 0.25),
    ]


async def test_attempts_of_the_same_number_have_the_same_seed_under_every_prompt():
    agent = Agent()
    await one_group(OLD, NEW, THIRD, agent=agent, attempts=2)
    seeds = {prompt: sorted(s for _, asked, s in agent.asked if asked == prompt) for prompt in ANSWERS}
    assert seeds[OLD] == seeds[NEW] == seeds[THIRD]
    assert len(set(seeds[OLD])) == 2


async def seeds_of(scenario_id, seed):
    agent = Agent()
    await one_group(agent=agent, scenario_id=scenario_id, seed=seed)
    return {s for _, _, s in agent.asked}


async def test_scenarios_and_tests_have_seeds_of_their_own():
    assert await seeds_of("s1", 0) == await seeds_of("s1", 0)
    assert not await seeds_of("s1", 0) & await seeds_of("s2", 0)
    assert not await seeds_of("s1", 0) & await seeds_of("s1", 1)


async def test_seeds_fit_into_31_bits():
    assert all(0 <= s < 2**31 for s in await seeds_of("s1", 0))


async def test_members_are_shuffled_by_scenario_and_seed():
    groups = await trial().groups([OLD, NEW], [scenario(f"s{i}") for i in range(12)], 0)
    orders = {tuple(arms(group)) for group in groups}
    assert len(orders) > 2
    assert {order[0] for order in orders} == {digest(OLD), digest(NEW)}


async def test_the_same_seed_gives_the_same_order():
    assert arms(await one_group(attempts=4)) == arms(await one_group(attempts=4))


async def test_the_judge_reads_no_prompt_but_the_spec():
    client = ScriptedClient(KeywordJudge(WORTH))
    await one_group(scorer=Ruler("openai/gpt-4.1", client=client))
    prompt = prompt_of(client.requests[0])
    assert (SPEC in prompt, "Lessons" in prompt, "Cite the page" in prompt) == (True, False, False)


async def test_the_judge_is_asked_once_for_all_arms():
    client = ScriptedClient(KeywordJudge(WORTH))
    await one_group(OLD, NEW, THIRD, scorer=Ruler("openai/gpt-4.1", client=client))
    assert len(client.requests) == 1


async def test_guards_read_the_spec_too():
    guard = ByAnswer(WORTH)
    await one_group(guards={"facts": guard})
    assert {system_prompt_of(t.messages()) for t in guard.shown[0]} == {SPEC}


async def test_the_group_itself_keeps_the_prompts_that_were_used():
    assert {system_prompt_of(t.messages()) for t in await one_group()} == {OLD, NEW}


async def test_the_agent_is_asked_as_the_policy_says():
    policies = []

    async def rollout(policy, scenario):
        policies.append(policy)
        return await Agent()(policy, scenario)

    await one_group(agent=rollout)
    assert {(p.base_url, p.model, p.version) for p in policies} == {("http://localhost/v1", "agent", 3)}


async def test_what_the_agent_notes_stays():
    assert {t.metadata["agent"] for t in await one_group()} == {"a"}


async def test_scorers_know_question_passage_and_metadata_but_no_reference():
    given = Scenario(
        id="s", question="Q?", context="C.", reference="R.", facts=(("F",),), metadata={"kind": "k"}
    )
    scorer = ByAnswer(WORTH)
    await trial(scorer=scorer).groups([OLD, NEW], [given], 0)
    assert scorer.shown[0].metadata == {"kind": "k", "question": "Q?", "context": "C."}


async def test_what_scorers_know_can_be_said():
    scorer = ByAnswer(WORTH)
    await one_group(scorer=scorer, facts=lambda s: {"reference": s.id})
    assert scorer.shown[0].metadata == {"reference": "s1"}


async def test_rollouts_are_counted():
    made = trial(attempts=3)
    await made.groups([OLD, NEW], [scenario("a"), scenario("b")], 0)
    await made.groups([OLD, NEW, THIRD], [scenario("c")], 0)
    assert made.rollouts == 2 * 3 * 2 + 3 * 3 * 1


async def test_a_comparison_is_new_minus_old():
    assert seen(await one_group(), OLD, NEW) == Seen("s1", 0.5, (1.0, 1.0))


async def test_an_attempt_that_breaks_is_missing_from_its_arm():
    group = await one_group(OLD, NEW, THIRD, agent=Agent(frozenset({("s1", NEW)})))
    assert (len(group), len(group.exceptions)) == (4, 2)


async def test_an_arm_whose_attempts_all_break_leaves_the_scenario_out_for_that_arm_alone():
    group = await one_group(OLD, NEW, THIRD, agent=Agent(frozenset({("s1", NEW)})))
    assert seen(group, OLD, NEW) is None
    assert seen(group, OLD, THIRD) == Seen("s1", 0.25, (1.0, 1.0))


async def test_an_arm_without_a_score_leaves_the_scenario_out_for_that_arm_alone():
    group = await one_group(OLD, NEW, THIRD, scorer=ByAnswer({**WORTH, "cited": None}))
    assert seen(group, OLD, NEW) is None
    assert seen(group, OLD, THIRD).difference == 0.25


async def test_an_old_prompt_without_a_score_leaves_the_scenario_out():
    group = await one_group(scorer=ByAnswer({**WORTH, "plain": None}))
    assert seen(group, OLD, NEW) is None


async def test_a_judge_that_breaks_leaves_the_scenario_out():
    group = await one_group(scorer=Broken())
    assert seen(group, OLD, NEW) is None
    assert [t.unscored for t in group] == ["RuntimeError: no judge today"] * 4


async def test_a_wrong_setting_of_the_judge_is_an_error():
    class Misset:
        async def score(self, group):
            raise ConfigError("no such judge")

    with pytest.raises(ConfigError, match="no such judge"):
        await one_group(scorer=Misset())


async def test_when_most_rollouts_break_the_trial_is_an_error():
    agent = Agent(frozenset({("s1", NEW), ("s1", OLD)}))
    with pytest.raises(GatherError, match="the tool is down"):
        await one_group(agent=agent)


def made_group(*members):
    """(prompt, reward, answer, guard) each."""
    return TrajectoryGroup(
        [
            Trajectory(
                messages_and_choices=chat(answer),
                reward=reward or 0.0,
                unscored="cannot tell" if reward is None else None,
                metadata={"prompt": digest(prompt)},
                metrics={} if guard is None else {"guard/facts": guard},
            )
            for prompt, reward, answer, guard in members
        ],
        scenario_id="s1",
    )


def test_a_comparison_is_of_means():
    group = made_group(
        (OLD, 0.25, "a", None),
        (OLD, 0.5, "a b", None),
        (NEW, 1.0, "a b c", None),
        (NEW, 0.5, "a b c d", None),
    )
    assert seen(group, OLD, NEW) == Seen("s1", 0.375, (1.5, 3.5))


def test_members_without_a_score_do_not_count():
    group = made_group((OLD, 0.25, "a", None), (NEW, None, "a b c d e f", None), (NEW, 0.75, "a b", None))
    assert seen(group, OLD, NEW) == Seen("s1", 0.5, (1.0, 2.0))


def test_guards_are_compared_too():
    group = made_group((OLD, 0.5, "a", 1.0), (OLD, 0.5, "a", 0.5), (NEW, 0.5, "a", 0.25))
    assert seen(group, OLD, NEW).guards == {"facts": -0.5}


def test_a_guard_that_gave_no_score_on_one_side_is_missing():
    group = made_group((OLD, 0.5, "a", 1.0), (NEW, 0.5, "a", None))
    assert seen(group, OLD, NEW).guards == {}


async def test_guards_note_their_scores_beside_the_judges():
    group = await one_group(guards={"facts": ByAnswer({"plain": 0.5, "cited": None})})
    found = {last_answer(t.messages()): t.metrics.get("guard/facts") for t in group}
    assert found == {"plain": 0.5, "cited": None}


async def test_a_guard_that_breaks_guards_nothing():
    group = await one_group(guards={"facts": Broken()})
    assert seen(group, OLD, NEW) == Seen("s1", 0.5, (1.0, 1.0))
