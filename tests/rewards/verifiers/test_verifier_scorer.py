"""Verifiers as scorers: references of groups, and members that cannot be verified."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from fakes import chat, group_of
from groundrule.data import Score, Trajectory, TrajectoryGroup
from groundrule.errors import ConfigError
from groundrule.rewards import apply_scores, verifiers
from groundrule.rewards.verifiers import (
    VerifierScorer,
    exact_scorer,
    final_state_scorer,
    json_schema_scorer,
    math_scorer,
    regex_scorer,
)


def values(scores: list[Score]) -> list[float | None]:
    return [score.value for score in scores]


async def test_each_member_is_verified_in_group_order():
    group = group_of(
        r"\boxed{3}", r"\boxed{0.5}", "no box", r"\boxed{1/2}", metadata={"reference": r"\frac12"}
    )
    assert values(await math_scorer(timeout_s=60).score(group)) == [0.0, 1.0, 0.0, 1.0]


async def test_the_reference_may_come_from_a_function_of_the_group():
    scorer = exact_scorer(reference=lambda group: group.metadata["gold"])
    assert values(await scorer.score(group_of("Bern", "Rome", metadata={"gold": "bern"}))) == [1.0, 0.0]


async def test_patterns_and_schemas_are_references_too():
    pattern = await regex_scorer(timeout_s=60).score(group_of("12", "x", metadata={"reference": r"\d+"}))
    schema = await json_schema_scorer(timeout_s=60).score(
        group_of("12", '"x"', metadata={"reference": {"type": "integer"}})
    )
    assert (values(pattern), values(schema)) == ([1.0, 0.0], [1.0, 0.0])


async def test_the_expected_state_is_the_reference():
    members = [
        Trajectory(messages_and_choices=chat("Done."), metadata={"final_state": json.dumps({"a": a})})
        for a in (1, 2)
    ]
    group = TrajectoryGroup(members, metadata={"reference": {"a": 1}})
    assert values(await final_state_scorer().score(group)) == [1.0, 0.0]


async def test_a_group_without_a_reference_gets_no_score():
    [score] = await exact_scorer().score(group_of("Bern"))
    assert score.reason == 'the group has no metadata["reference"]; put it there, or pass reference='


async def test_a_member_that_said_nothing_gets_no_score_and_the_others_do():
    silent = Trajectory(messages_and_choices=[{"role": "user", "content": "Capital?"}])
    group = TrajectoryGroup(
        [silent, Trajectory(messages_and_choices=chat("Bern"))], metadata={"reference": "Bern"}
    )
    assert values(await exact_scorer().score(group)) == [None, 1.0]


def fails_on_rome(answer: str, reference: str) -> Score:
    if answer == "Rome":
        raise ValueError("no Rome here")
    return Score(value=1.0)


async def test_a_verifier_that_fails_costs_its_member_only():
    scores = await VerifierScorer(fails_on_rome).score(group_of("Bern", "Rome", metadata={"reference": "x"}))
    assert [s.reason for s in scores] == [None, "the verifier failed: ValueError: no Rome here"]


async def test_a_setting_that_cannot_work_is_raised():
    with pytest.raises(ConfigError, match="normalise names"):
        await exact_scorer(normalise=("accents",)).score(group_of("Bern", metadata={"reference": "Bern"}))


async def test_no_score_keeps_the_reward_out_of_the_training():
    group = group_of(r"\boxed{3}", metadata={"reference": r"\foo"})
    scored = apply_scores(group, await math_scorer(timeout_s=60).score(group), name="math")
    assert scored.trajectories[0].unscored.startswith("bad_gold: ")


@pytest.mark.parametrize("name", verifiers.__all__)
def test_every_exported_name_exists(name):
    assert getattr(verifiers, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'verify_nothing'"):
        _ = verifiers.verify_nothing


def test_importing_verifiers_imports_no_library_of_theirs():
    program = (
        "import json, sys; import groundrule.rewards; from groundrule.rewards import verifiers; "
        "[getattr(verifiers, name) for name in verifiers.__all__]; "
        "print(json.dumps([m for m in ('math_verify', 'sympy', 'jsonschema', 'duckdb') if m in sys.modules]))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == []
