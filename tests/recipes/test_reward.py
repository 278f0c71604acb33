"""The reward that a configuration names: a judge, a verifier, or both as one."""

from __future__ import annotations

from pathlib import Path

import pytest

from groundrule.data import Scenario, Trajectory, TrajectoryGroup
from groundrule.errors import ConfigError
from groundrule.recipes.config import parse_config
from groundrule.recipes.judging import estimate
from groundrule.recipes.reward import aligned, check_references, rulers, verifier_of
from groundrule.recipes.reward import reward_of as reward_with
from groundrule.rewards import Ruler
from groundrule.rewards.compose import Composite
from groundrule.rewards.jury import Jury


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")


def config(**judge: object):
    return parse_config({"judge": judge})


def reward_of(made):
    return reward_with(made, verifier_of(made))


def parts(scorer: Composite) -> list[tuple[str, bool]]:
    return [(part.name, part.is_first) for part in scorer.parts]


def test_without_a_verifier_the_reward_is_the_judge():
    assert isinstance(reward_of(config()), Ruler)


def test_a_verifier_ranks_first_and_the_judge_orders_what_it_puts_level():
    both = reward_of(config(verifier="exact"))
    assert (both.how, parts(both)) == ("lexicographic", [("verifier", True), ("ruler", False)])


@pytest.mark.parametrize(("combine", "first"), [("gated", True), ("sum", False), ("normalised", False)])
def test_the_two_are_combined_as_the_configuration_says(combine, first):
    both = reward_of(config(verifier="exact", combine=combine))
    assert (both.how, parts(both)) == (combine, [("verifier", first), ("ruler", False)])


def test_a_verifier_alone_asks_no_judge():
    alone = reward_of(config(verifier="exact", combine="verifier", model="openai/nothing"))
    assert (parts(alone), list(rulers(alone)), alone.calls_for(8)) == ([("verifier", False)], [], 0)


async def test_the_value_of_a_verifier_alone_is_the_reward_and_a_part():
    group = TrajectoryGroup(
        [Trajectory(messages_and_choices=[{"role": "assistant", "content": "Paris"}])],
        metadata={"reference": "Paris"},
    )
    [score] = await reward_of(config(verifier="exact", combine="verifier")).score(group)
    assert (score.value, score.parts) == (1.0, {"verifier": 1.0})


def test_a_function_of_the_users_own_can_be_the_verifier(tmp_path: Path):
    (tmp_path / "mine.py").write_text("def short(answer):\n    return float(len(answer) < 5)\n")
    made = reward_of(config(verifier=f"{tmp_path / 'mine.py'}:short", combine="verifier"))
    assert parts(made) == [("verifier", False)]


def test_a_judge_is_no_verifier():
    with pytest.raises(ConfigError, match=r"judge.verifier is 'openai/o3', which would be a judge"):
        reward_of(config(verifier="openai/o3"))


def test_a_scenario_without_a_reference_cannot_be_verified():
    scenarios = [Scenario(id="a", question="?", reference="1"), Scenario(id="b", question="?")]
    with pytest.raises(ConfigError, match=r"scenario 'b' \(and 0 more\) has no `reference`"):
        check_references(config(verifier="math"), scenarios)


def test_code_is_verified_by_tests_in_the_metadata():
    with pytest.raises(ConfigError, match=r"scenario 'a' \(and 0 more\) has no `metadata.tests`"):
        check_references(config(verifier="code"), [Scenario(id="a", question="?", reference="1")])
    check_references(
        config(verifier="code"), [Scenario(id="a", question="?", metadata={"tests": ["assert f(1) == 1"]})]
    )


def test_a_jury_beside_a_verifier_learns_its_scales_too():
    both = reward_of(config(verifier="exact", model="openai/a", jury=[{"model": "openai/b"}]))
    members = [
        Trajectory(metrics={"reward/ruler/jury/openai/a": a, "reward/ruler/jury/openai/b": b})
        for a, b in ((0.1, 0.4), (0.9, 0.5))
    ]
    learned = aligned(both, [TrajectoryGroup(members)])
    [jury] = [p.scorer for p in learned.parts if isinstance(p.scorer, Jury)]
    assert {name: spread.groups for name, spread in jury.spreads.items()} == {"openai/a": 1, "openai/b": 1}


def test_judging_beside_a_verifier_is_priced():
    both = reward_of(config(verifier="exact", model="openai/a", passes=2, max_passes=2))
    assert both.calls_for(4) == 2
    assert both.cheaper().calls_for(4) == 1


def test_a_verifier_alone_costs_nothing():
    made = config(verifier="exact", combine="verifier")
    assert estimate(made, reward_of(made), [], None, steps=3) is None
