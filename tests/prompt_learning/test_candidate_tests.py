"""Candidates side by side, look after look, until each is decided."""

from __future__ import annotations

import pytest

from fakes import chat
from groundrule.data import Scenario, Score, Trajectory
from groundrule.data.messages import last_answer
from groundrule.data.protocols import Policy
from groundrule.prompt_learning import testing
from groundrule.prompt_learning.settings import PromptSettings
from groundrule.prompt_learning.testing import Candidate, run_test, votes
from groundrule.prompt_learning.trial import Seen, Trial

SCENARIOS = [Scenario(id=f"s{i:02}", question=f"Question {i}?") for i in range(32)]
SETTINGS = PromptSettings(attempts=1)
PARENT = "parent"


class World:
    """Each prompt's answers have a worth, perhaps another one at each scenario."""

    def __init__(self, **worth):
        self.worth = {PARENT: 0.5, **worth}
        self.asked = []

    async def rollout(self, policy, scenario):
        self.asked.append((scenario.id, policy.system_prompt))
        answer = f"{policy.system_prompt} {scenario.id}"
        return Trajectory(messages_and_choices=chat(answer, question=scenario.question))

    async def score(self, group):
        return [Score(value=self._worth(*last_answer(t.messages()).split())) for t in group]

    def _worth(self, prompt, name):
        worth = self.worth[prompt]
        return worth(int(name[1:])) if callable(worth) else worth

    async def run(self, *candidates, scenarios=SCENARIOS, settings=SETTINGS, seed=0):
        trial = Trial("spec", self.rollout, Policy("", "m", 0), self, attempts=settings.attempts)
        return await run_test(trial, PARENT, candidates, scenarios, settings, seed)

    def scenarios_of(self, prompt):
        return [name for name, asked in self.asked if asked == prompt]


def outcomes(run):
    return [(one.standing.outcome, len(one.data)) for one in run.tested]


async def test_a_clear_gain_is_accepted_at_the_first_look():
    run = await World(better=0.75).run(Candidate("better", 0.05))
    assert outcomes(run) == [("accepted", 8)]


async def test_the_first_look_has_its_part_of_the_level():
    run = await World(better=0.75).run(Candidate("better", 0.05))
    (look,) = run.tested[0].standing.looks
    assert (look.p, look.level) == (1 / 256, 0.0125)


async def test_a_gain_that_takes_more_data_is_accepted_later():
    # Eight of eight are 1 in 256 and sixteen of sixteen 1 in 65536. Of a level of 0.008 the first look's quarter is out
    # of its reach and goes to the second one.
    run = await World(better=0.75).run(Candidate("better", 0.008))
    assert outcomes(run) == [("accepted", 16)]
    assert [look.level for look in run.tested[0].standing.looks] == pytest.approx([0.0, 0.004])


async def test_what_is_no_better_is_given_up_at_the_first_look():
    world = World(same=0.5)
    assert outcomes(await world.run(Candidate("same", 0.05))) == [("futile", 8)]
    assert len(world.asked) == 16


async def test_what_is_not_shown_after_all_scenarios_is_not_accepted():
    run = await World(better=0.75).run(Candidate("better", 0.0))
    assert outcomes(run) == [("not shown", 32)]


async def test_where_one_is_accepted_the_others_go_on_until_they_are_decided():
    world = World(better=0.75, slow=0.625, hopeless=0.625)
    run = await world.run(Candidate("better", 0.05), Candidate("slow", 0.008), Candidate("hopeless", 0.0))
    assert outcomes(run) == [("accepted", 8), ("accepted", 16), ("not shown", 32)]


async def test_what_was_accepted_is_asked_no_more():
    world = World(better=0.75, slow=0.625)
    await world.run(Candidate("better", 0.05), Candidate("slow", 0.0))
    assert (len(world.scenarios_of("better")), len(world.scenarios_of("slow"))) == (8, 32)


async def test_what_was_given_up_is_asked_no_more():
    world = World(worse=0.25, better=0.75)
    await world.run(Candidate("worse", 0.008), Candidate("better", 0.008))
    assert (len(world.scenarios_of("worse")), len(world.scenarios_of("better"))) == (8, 16)


async def test_every_look_asks_new_scenarios():
    world = World(better=0.75)
    await world.run(Candidate("better", 0.008))
    assert len(set(world.scenarios_of("better"))) == 16
    assert sorted(world.scenarios_of("better")) == sorted(world.scenarios_of(PARENT))


async def test_the_parent_is_asked_once_beside_all_candidates():
    world = World(better=0.75, best=1.0)
    await world.run(Candidate("better", 0.05), Candidate("best", 0.05))
    assert len(world.scenarios_of(PARENT)) == 8


async def test_scenarios_are_drawn_anew_for_another_seed():
    drawn = []
    for seed in (1, 1, 2):
        world = World(better=0.75)
        await world.run(Candidate("better", 0.05), seed=seed)
        drawn.append(sorted(world.scenarios_of(PARENT)))
    assert drawn[0] == drawn[1] != drawn[2]


async def test_with_few_scenarios_there_are_few_looks():
    run = await World(better=0.75).run(Candidate("better", 0.05), scenarios=SCENARIOS[:6])
    (look,) = run.tested[0].standing.looks
    assert outcomes(run) == [("accepted", 6)]
    assert look.level == pytest.approx(0.05)


async def test_more_scenarios_than_the_last_look_are_left_alone():
    world = World(better=0.75)
    more = [Scenario(id=f"s{i:02}", question=f"Question {i}?") for i in range(50)]
    run = await world.run(Candidate("better", 0.0), scenarios=more)
    assert outcomes(run) == [("not shown", 32)]


async def test_a_removal_that_changes_nothing_is_accepted():
    run = await World(shorter=0.5).run(Candidate("shorter", 0.05, is_removal=True))
    assert outcomes(run) == [("accepted", 8)]


async def test_all_judged_groups_are_kept():
    run = await World(better=0.75).run(Candidate("better", 0.008))
    assert [len(group) for group in run.groups] == [2] * 16


async def test_without_candidates_nobody_is_asked():
    world = World()
    assert (await world.run()).groups == [] and world.asked == []


async def test_differences_are_kept_by_scenario():
    run = await World(better=0.75).run(Candidate("better", 0.05), scenarios=SCENARIOS[:4])
    assert run.tested[0].differences == {"s00": 0.25, "s01": 0.25, "s02": 0.25, "s03": 0.25}
    assert run.tested[0].mean == 0.25


def test_without_data_the_mean_is_nothing():
    assert testing.Tested(Candidate("x", 0.05)).mean == 0.0


def test_votes_count_scenarios_for_and_against():
    assert votes(
        [Seen("a", 0.5, (1, 1)), Seen("b", 0.1, (1, 1)), Seen("c", 0.0, (1, 1)), Seen("d", -0.1, (1, 1))]
    ) == (
        2,
        1,
    )


@pytest.mark.parametrize("attempts", [1, 2, 3])
async def test_each_prompt_is_asked_as_often_as_the_settings_say(attempts):
    world = World(better=0.75)
    await world.run(Candidate("better", 0.05), settings=PromptSettings(attempts=attempts))
    assert len(world.scenarios_of("better")) == 8 * attempts
