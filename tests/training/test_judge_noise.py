"""What a judge's noise becomes in training: next to nothing, where plain normalisation makes it full-size."""

from __future__ import annotations

import random
from statistics import fmean

import pytest
from test_lora_trainer import trainer

from groundrule.algorithms.advantages import advantages
from groundrule.data.group import TrajectoryGroup
from groundrule.rewards.noisy import NoisyJudge
from groundrule.rewards.orders import orders
from groundrule.rewards.reliability import about_their_means, reliability
from tiny import sampled_trajectories

EQUAL = [0.0] * 8


def readings(qualities: list[float], rng: random.Random) -> list[list[float]]:
    """Four passes of a strong simulated judge, by item."""
    judge = NoisyJudge.strong()
    passes = []
    for order in orders(len(qualities), 4, rng=rng):
        said = judge.scores([qualities[i] for i in order], rng=rng)
        passes.append([said[order.index(i)] for i in range(len(qualities))])
    return passes


def mean_size(qualities: list[float], *, kind: str, with_reliability: bool) -> float:
    """Mean |advantage| over sixty groups."""
    rng = random.Random(7)
    sizes = []
    for _ in range(60):
        passes = readings(qualities, rng)
        means = [fmean(column) for column in zip(*passes, strict=True)]
        trust = reliability(about_their_means(passes)) if with_reliability else 1.0
        pushes = advantages(means, reliability=trust or 0.0, kind=kind)
        sizes.append(fmean(abs(a) for a in pushes if a is not None))
    return fmean(sizes)


def test_equal_answers_get_full_size_advantages_from_plain_normalisation():
    assert mean_size(EQUAL, kind="population_std", with_reliability=False) == pytest.approx(0.84, abs=0.03)


def test_equal_answers_get_little_of_that_from_the_measured_judge():
    assert mean_size(EQUAL, kind="floored", with_reliability=True) == pytest.approx(0.1, abs=0.02)


def test_answers_that_really_differ_keep_their_advantages():
    apart = [-1.5, -1.0, -0.5, 0.0, 0.0, 0.5, 1.0, 1.5]
    assert mean_size(apart, kind="floored", with_reliability=True) > 0.75


def gradient_of_noise(trust: float | None, **settings: str) -> float:
    """The length of the gradient for two answers that differ by 0.02."""
    made = trainer(**settings)
    group = TrajectoryGroup(sampled_trajectories(made.model, [0.52, 0.50]))
    if trust is not None:
        group.metrics["judge_reliability"] = trust
    return float(made.step([group])["train/grad_norm"] or 0.0)


def test_two_answers_that_differ_by_noise_move_the_model_hardly_at_all():
    plain = gradient_of_noise(None, advantage="group_std")
    measured = gradient_of_noise(0.02)
    assert plain > 1.0  # As large as for answers that differ by everything.
    assert measured < plain / 300


def test_the_tie_band_ties_what_the_judge_cannot_tell_apart():
    made = trainer(tie_band=1.0)
    group = TrajectoryGroup(sampled_trajectories(made.model, [0.52, 0.50]))
    group.metrics["judge_noise"] = 0.05
    metrics = made.step([group])
    assert metrics["train/updated"] == 0
