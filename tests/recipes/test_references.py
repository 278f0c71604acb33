"""Reference answers that are ranked beside the sampled ones."""

from __future__ import annotations

import pytest

from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import last_answer
from groundrule.data.scenario import Scenario
from groundrule.data.trajectory import Trajectory
from groundrule.recipes.rlhf.references import with_references

SCENARIOS = [
    Scenario(id=name, system="Be brief.", question=f"{name}?", reference=f"About {name}.")
    for name in ("dogs", "cats", "bikes", "tents")
]


@pytest.fixture
def group() -> TrajectoryGroup:
    said = [*SCENARIOS[0].messages(), {"role": "assistant", "content": "Woof."}]
    return TrajectoryGroup([Trajectory(messages_and_choices=said)], scenario_id="dogs")


def texts(group: TrajectoryGroup) -> list[str | None]:
    return [last_answer(member.messages()) for member in group]


def test_the_scenarios_own_reference_comes_first_and_then_those_of_others(group):
    sampled, own, *others = texts(with_references(group, SCENARIOS, 3, seed=0))

    assert (sampled, own) == ("Woof.", "About dogs.")
    assert len(others) == 2
    assert set(others) < {"About cats.", "About bikes.", "About tents."}


def test_a_reference_answers_the_question_that_was_asked(group):
    added = with_references(group, SCENARIOS, 2, seed=0).trajectories[-1]

    assert added.messages()[:-1] == SCENARIOS[0].messages()


def test_one_seed_draws_the_same_references(group):
    drawn = [texts(with_references(group, SCENARIOS, 3, seed=seed)) for seed in (1, 1)]

    assert drawn[0] == drawn[1]


def test_a_scenario_that_is_not_trained_on_gets_none(group):
    assert texts(with_references(group, SCENARIOS[1:], 3, seed=0)) == ["Woof."]


def test_without_a_wish_nothing_is_added(group):
    assert with_references(group, SCENARIOS, 0, seed=0) is group


def test_a_scenario_without_a_reference_has_only_those_of_others(group):
    bare = [SCENARIOS[0].model_copy(update={"reference": None}), *SCENARIOS[1:]]

    assert len(texts(with_references(group, bare, 2, seed=0))) == 2
