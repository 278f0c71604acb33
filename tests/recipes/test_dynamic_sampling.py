"""Groups whose rewards are all equal are replaced by other scenarios' within the step."""

from __future__ import annotations

import pytest

from groundrule.data import Scenario, Trajectory, TrajectoryGroup
from groundrule.recipes.config import parse_config
from groundrule.recipes.dynamic_sampling import drawn_again, is_level, other_scenarios, rounds_of

SCENARIOS = [Scenario(id=f"s{i}", question="?") for i in range(6)]


def group(name: str, *rewards: float | None) -> TrajectoryGroup:
    members = [
        Trajectory(reward=reward or 0.0, unscored=None if reward is not None else "no verdict")
        for reward in rewards
    ]
    return TrajectoryGroup(members, scenario_id=name)


class Gathering:
    """Gives the groups that it was told to, and remembers what it was asked for."""

    def __init__(self, *rounds: list[TrajectoryGroup]) -> None:
        self.rounds = list(rounds)
        self.asked: list[list[str]] = []

    async def __call__(self, scenarios):
        self.asked.append([s.id for s in scenarios])
        return self.rounds.pop(0), {"judge/calls_total": float(len(self.asked))}


def next_ones():
    """Scenarios s2, s3, ... as they are wanted."""
    left = iter(SCENARIOS[2:])
    return lambda number, count: [next(left) for _ in range(count)]


@pytest.mark.parametrize(
    ("rewards", "level"),
    [((1.0, 1.0), True), ((0.0, 1.0), False), ((None, 1.0), True), ((None, None), True), ((), True)],
)
def test_a_group_is_level_when_no_two_known_rewards_differ(rewards, level):
    assert is_level(group("s", *rewards)) is level


async def test_a_level_group_is_replaced_in_its_place():
    gather = Gathering([group("s2", 0.0, 1.0)])
    groups, _ = await drawn_again(
        ([group("s0", 1.0, 1.0), group("s1", 0.0, 1.0)], {}), 3, gather, next_ones()
    )
    assert ([g.scenario_id for g in groups], gather.asked) == (["s2", "s1"], [["s2"]])


async def test_what_is_level_after_the_last_round_is_kept():
    gather = Gathering([group("s2", 1.0, 1.0)], [group("s3", 0.0, 0.0)])
    groups, metrics = await drawn_again(([group("s0", 1.0, 1.0)], {}), 2, gather, next_ones())
    assert ([g.scenario_id for g in groups], metrics["train/groups_replaced"]) == (["s3"], 2.0)


async def test_the_mean_over_all_that_was_drawn_is_reported_beside_that_of_the_chosen():
    gather = Gathering([group("s2", 0.0, 1.0)])
    _, metrics = await drawn_again(([group("s0", 1.0, 1.0)], {}), 1, gather, next_ones())
    assert metrics == {"judge/calls_total": 1.0, "train/groups_replaced": 1.0, "reward/mean_drawn": 0.75}


async def test_without_rounds_nothing_is_asked_and_nothing_added():
    judged = ([group("s0", 1.0, 1.0)], {"reward/mean": 1.0})
    assert await drawn_again(judged, 0, Gathering(), next_ones()) == judged


async def test_it_ends_when_there_is_no_other_scenario():
    groups, _ = await drawn_again(([group("s0", 1.0, 1.0)], {}), 3, Gathering(), lambda number, count: [])
    assert [g.scenario_id for g in groups] == ["s0"]


def test_other_scenarios_are_those_that_the_step_has_not_met():
    taken = {"s0", "s1", "s2", "s3"}
    chosen = other_scenarios(SCENARIOS, taken, 4, seed=0, step=1, round_=1)
    assert (sorted(s.id for s in chosen), taken) == (["s4", "s5"], {f"s{i}" for i in range(6)})


def test_the_same_step_draws_the_same_others():
    def chosen(step: int) -> list[str]:
        return [s.id for s in other_scenarios(SCENARIOS, set(), 3, seed=0, step=step, round_=1)]

    assert chosen(1) == chosen(1)
    assert chosen(1) != chosen(2)


@pytest.mark.parametrize(
    ("train", "rounds"),
    [
        ({}, 0),
        ({"preset": "dapo"}, 3),
        ({"preset": "dapo", "resample_rounds": 0}, 0),
        ({"resample_rounds": 2}, 2),
    ],
)
def test_the_preset_says_whether_unless_the_configuration_does(train, rounds):
    assert rounds_of(parse_config({"train": train}).train) == rounds
