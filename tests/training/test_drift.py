"""The KL of a policy's own answers to the policy that it began as."""

from __future__ import annotations

import pytest

from groundrule.algorithms.sequences import sequences_of
from groundrule.data.group import TrajectoryGroup
from groundrule.data.trajectory import Trajectory
from groundrule.training.drift import answer_kl
from ppo import group, trainer
from tiny import ASK, full_logprobs


def test_a_policy_that_has_not_moved_is_at_no_distance() -> None:
    made = trainer()

    [found] = answer_kl(made.model, [group(made, [1.0, 0.0])])

    assert found == pytest.approx([0.0, 0.0], abs=1e-5)


def test_the_distance_is_the_log_ratio_of_the_whole_answer_at_the_temperature_of_sampling() -> None:
    made = trainer(moved=True)
    given = group(made, [1.0, 0.0])

    [found] = answer_kl(made.model, [given])

    for nats, member in zip(found, given.trajectories, strict=True):
        [sequence] = sequences_of(member)
        ids = (list(sequence.prompt_ids), list(sequence.ids))
        moved = full_logprobs(made.model.network, *ids, temperature=0.7).sum().item()
        with made.model.base_only():
            base = full_logprobs(made.model.network, *ids, temperature=0.7).sum().item()
        assert nats == pytest.approx(moved - base, abs=1e-4)


def test_an_answer_without_sampled_tokens_gives_no_number() -> None:
    made = trainer()
    text = Trajectory(messages_and_choices=[*ASK, {"role": "assistant", "content": "No."}])
    [sampled] = group(made, [1.0]).trajectories

    [found] = answer_kl(made.model, [TrajectoryGroup([text, sampled])])

    assert len(found) == 1
