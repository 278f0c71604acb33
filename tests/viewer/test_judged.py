"""What a jury said is found in the steps, wherever its scorer wrote it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from fake_run import sampled

from groundrule.data import Score, Trajectory, TrajectoryGroup
from groundrule.rewards.apply import apply_scores
from groundrule.rewards.compose import Composite, Part
from groundrule.rewards.jury import Juror, Jury
from groundrule.viewer.judged import Judged, judged, step_means
from groundrule.viewer.steps import Step

USER = {"role": "user", "content": "Open?"}
CONFIG = {
    "judge": {
        "model": "rm",
        "jury": [
            {"model": "rag", "name": "true rule", "role": "holdout"},
            {"model": "openai/a", "name": None, "role": "holdout"},
            {"model": "openai/b", "name": None, "role": "score"},
        ],
    }
}


class Fixed:
    """A scorer that gives what it is told."""

    def __init__(self, *values: float) -> None:
        self.values = values

    async def score(self, group: TrajectoryGroup) -> list[Score]:
        return [Score(value=value) for value in self.values]


def said(reward: float, *, unscored: str | None = None, **metrics: float) -> Trajectory:
    """An answer with these metrics under `ruler/jury/`."""
    parts = {f"ruler/jury/{name}": value for name, value in metrics.items()}
    return Trajectory(
        messages_and_choices=[USER, sampled("Yes.")], reward=reward, unscored=unscored, metrics=parts
    )


def of_steps(
    *steps: list[TrajectoryGroup],
    config: Mapping[str, Any] = CONFIG,
    metrics: list[dict[str, Any]] | None = None,
) -> Judged:
    numbered = [Step(number, groups) for number, groups in enumerate(steps, start=1)]
    return judged(config, numbered, metrics or [])


async def scored_by(scorer: Any, name: str) -> TrajectoryGroup:
    """Two answers as a training scores them."""
    group = TrajectoryGroup([said(0.0), said(0.0)])
    return apply_scores(group, await scorer.score(group), name=name)


def jury() -> Jury:
    return Jury([Juror("rm", Fixed(0.8, 0.6)), Juror("true rule", Fixed(0.1, 0.3), role="holdout")])


async def test_a_jury_alone_is_read_from_the_rewards_and_its_parts() -> None:
    found = of_steps([await scored_by(jury(), "ruler")])
    assert (found.trained, found.held_out) == ({1: [[0.8, 0.6]]}, {"true rule": {1: [[0.1, 0.3]]}})


async def test_beside_a_verifier_the_jurys_own_part_is_read_and_not_the_sum() -> None:
    both = Composite([Part("verifier", Fixed(1.0, 0.0)), Part("ruler", jury())], how="sum")
    found = of_steps([await scored_by(both, "reward")])
    assert (found.trained, found.held_out) == ({1: [[0.8, 0.6]]}, {"true rule": {1: [[0.1, 0.3]]}})


async def test_answers_that_a_verifier_decided_alone_are_left_out() -> None:
    parts = [Part("verifier", Fixed(1.0, 0.0), is_first=True), Part("ruler", jury())]
    found = of_steps([await scored_by(Composite(parts), "reward")])
    assert (found.trained, found.held_out) == ({}, {})


async def test_a_programs_own_jury_is_found_without_a_configuration() -> None:
    found = of_steps([await scored_by(jury(), "mine")], config={})
    assert list(found.held_out) == ["true rule"]


def test_a_juror_without_a_name_is_called_as_its_model() -> None:
    found = of_steps([TrajectoryGroup([said(0.5, **{"rm": 0.5, "openai/a": 0.25})])])
    assert found.held_out == {"openai/a": {1: [[0.25]]}}


def test_unscored_answers_count_for_no_judge() -> None:
    out = said(0.9, unscored="the judge was down", **{"true rule": 0.9})
    found = of_steps([TrajectoryGroup([out, said(0.5, **{"rm": 0.5, "true rule": 0.25})])])
    assert (found.trained, found.held_out) == ({1: [[0.5]]}, {"true rule": {1: [[0.25]]}})


def test_a_step_without_scores_is_left_out() -> None:
    found = of_steps([TrajectoryGroup([said(0.5, rm=0.5)])], [TrajectoryGroup([said(0.5, unscored="late")])])
    assert list(found.trained) == [1]


@pytest.mark.parametrize(
    "config", [{}, {"judge": "openai/o3"}, {"judge": {"jury": []}}, {"judge": {"jury": ["a"]}}]
)
def test_a_run_without_a_jury_has_nothing_to_compare(config: dict[str, Any]) -> None:
    assert of_steps([TrajectoryGroup([said(0.5)])], config=config) == Judged({}, {}, {})


def test_only_a_kl_in_nats_an_answer_is_taken() -> None:
    lines = [{"step": 1, "ppo/kl_answer": 0.5}, {"step": 2, "policy/kl_reference": 0.1, "ppo/kl_token": 0.1}]
    assert of_steps(metrics=lines).kl == {1: 0.5}


def test_the_mean_of_a_step_is_over_its_answers_and_not_over_its_groups() -> None:
    assert step_means({3: [[1.0], [0.0, 0.5, 0.5]]}) == {3: 0.5}
