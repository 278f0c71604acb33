"""What PPO makes of scored trajectories: rewards, values, advantages and returns of every sampled token."""

from __future__ import annotations

import math

import pytest
import torch

from groundrule.algorithms.gae import gae
from groundrule.algorithms.sequences import TokenSequence
from groundrule.data.group import TrajectoryGroup
from groundrule.data.trajectory import History, Trajectory
from groundrule.errors import TrainingError
from groundrule.training.ppo_batch import PpoBatch, ScoredTokens, estimated, scored_tokens
from groundrule.training.ppo_metrics import batch_metrics, explained_variance
from groundrule.training.ppo_settings import PpoSettings
from ppo import START, group, places, plain_logprobs, plain_values, trainer, written
from tiny import ASK


def short(count: int) -> TokenSequence:
    return TokenSequence(START, (50,) * count, (True,) * count, (0.0,) * count)


def known(trajectories: list[ScoredTokens], kl: list[list[float]], *, whiten: bool = False) -> PpoBatch:
    """Of known KLs, with a critic that expects 0.5 everywhere, a coefficient of 0.1 and lambda 0.95."""
    return estimated(
        trajectories,
        [torch.tensor(row) - 1.0 for row in kl],
        [torch.full((len(row),), -1.0) for row in kl],
        [torch.full((len(row),), 0.5) for row in kl],
        settings=PpoSettings(whiten=whiten),
        kl_coef=0.1,
    )


def test_the_kl_is_paid_at_every_token_and_the_score_comes_at_the_last() -> None:
    batch = known([ScoredTokens(1.0, ((short(2),),))], [[0.2, -0.4]])

    # Rewards -0.02 and 1.04; A_2 = 1.04 - 0.5, A_1 = -0.02 + 0.5 - 0.5 + 0.95 x 0.54.
    assert batch.advantages[0].tolist() == pytest.approx([0.493, 0.54])
    assert batch.returns[0].tolist() == pytest.approx([0.993, 1.04])


def test_a_conversation_in_two_sequences_is_one_course() -> None:
    one = known([ScoredTokens(1.0, ((short(3),),))], [[0.1, 0.2, 0.3]])
    two = known([ScoredTokens(1.0, ((short(1), short(2)),))], [[0.1], [0.2, 0.3]])

    assert torch.equal(torch.cat(two.advantages), one.advantages[0])


def test_the_score_stands_at_the_end_of_every_history() -> None:
    batch = known([ScoredTokens(1.0, ((short(1),), (short(1),)))], [[0.0], [0.0]])

    assert [row.tolist() for row in batch.returns] == [[1.0], [1.0]]
    assert batch.owners == (0, 0)


def test_advantages_are_whitened_over_all_tokens_and_returns_are_not() -> None:
    two = [ScoredTokens(1.0, ((short(2),),)), ScoredTokens(0.0, ((short(1),),))]
    batch = known(two, [[0.0, 0.0], [0.0]], whiten=True)

    # Before: 0.475, 0.5 and -0.5; their mean is 0.158333, their unbiased deviation 0.570270.
    assert torch.cat(batch.advantages).tolist() == pytest.approx([0.555292, 0.599130, -1.154422], abs=1e-5)
    assert torch.cat(batch.returns).tolist() == pytest.approx([0.975, 1.0, 0.0])


@pytest.mark.parametrize("scores", [[0.7], [0.7, 0.7]])
def test_advantages_that_are_all_alike_push_nothing(scores: list[float]) -> None:
    batch = known([ScoredTokens(s, ((short(1),),)) for s in scores], [[0.0]] * len(scores), whiten=True)

    assert [row.tolist() for row in batch.advantages] == [[0.0]] * len(scores)
    assert not batch.has_signal


@pytest.mark.parametrize("share", [True, False])
@pytest.mark.parametrize("tokens_at_once", [4, 4096])
def test_all_numbers_are_those_of_plain_passes(tokens_at_once: int, share: bool) -> None:
    made = trainer(moved=True, tokens_at_once=tokens_at_once, share_prefixes=share)

    batch = made.estimate(written())

    with torch.no_grad():
        for i, sequence in enumerate(batch.sequences):
            assert torch.allclose(batch.logprobs[i], plain_logprobs(made.model.network, sequence), atol=1e-5)
            assert torch.allclose(batch.values[i], plain_values(made.critic, sequence), atol=1e-5)
            with made.model.base_only():
                wanted = plain_logprobs(made.model.network, sequence)
            assert torch.allclose(batch.reference[i], wanted, atol=1e-5)


def test_advantages_pass_over_a_tool_result_as_gae_with_a_mask_does() -> None:
    made = trainer(moved=True, whiten=False, kl_coef=0.1)

    batch = made.estimate(written())

    sequence, mask = batch.sequences[0], torch.tensor(written()[0].histories[0][0].sampled)
    rewards, values = torch.zeros(8), torch.zeros(8)
    rewards[mask] = -0.1 * batch.kl[0]
    rewards[-1] += 1.0
    values[mask] = batch.values[0]
    advantages, returns = gae(rewards, values, action_mask=mask)
    assert places(sequence).tolist() == [4, 5, 6, 10, 11]
    assert torch.allclose(batch.advantages[0], advantages[mask], atol=1e-6)
    assert torch.allclose(batch.returns[0], returns[mask], atol=1e-6)


def test_a_part_of_a_batch_holds_whole_trajectories() -> None:
    part = trainer().estimate(written()).only([2, 0])

    assert part.owners == (0, 2)
    assert part.tokens == 5 + 2
    assert len(part.advantages) == len(part.returns) == 2


def test_members_without_a_score_are_left_out() -> None:
    given = group(trainer(), [1.0, 0.0, 0.5])
    given.trajectories[1].unscored = "the judge gave up"

    assert [t.score for t in scored_tokens([given])] == [1.0, 0.5]


def test_an_answer_that_was_cut_has_the_penalty_taken_off() -> None:
    given = group(trainer(), [1.0, 0.5])
    given.trajectories[0].messages_and_choices[-1].finish_reason = "length"
    given.trajectories[1].messages_and_choices[-1].finish_reason = "stop"

    assert [t.score for t in scored_tokens([given], truncated_penalty=0.25)] == [0.75, 0.5]


@pytest.mark.parametrize("reward", [math.nan, math.inf, -math.inf])
def test_a_reward_that_is_no_number_is_named(reward: float) -> None:
    given = group(trainer(), [1.0, 0.0])
    given.trajectories[1].reward = reward

    with pytest.raises(
        TrainingError, match=f"group 0, trajectory 1 has the reward {reward}; a reward is a finite"
    ):
        scored_tokens([given])


def test_a_scored_answer_without_sampled_tokens_is_named() -> None:
    text = Trajectory(messages_and_choices=[*ASK, {"role": "assistant", "content": "No."}], reward=1.0)

    with pytest.raises(TrainingError, match="group 0, trajectory 0 has a reward but no sampled tokens"):
        scored_tokens([TrajectoryGroup([text])])


def test_every_history_of_a_trajectory_is_read() -> None:
    first, second = group(trainer(), [1.0, 0.0]).trajectories
    first.additional_histories = [History(messages_and_choices=second.messages_and_choices)]

    [found] = scored_tokens([TrajectoryGroup([first])])

    assert [len(history) for history in found.histories] == [1, 1]


def test_a_critic_that_is_no_number_is_named() -> None:
    made = trainer()
    made.critic.head.weight.data.fill_(math.nan)

    with pytest.raises(TrainingError, match="the critic's values of scored trajectory 0 are not all finite"):
        made.estimate(written())


def test_the_numbers_of_a_known_batch() -> None:
    batch = known([ScoredTokens(1.0, ((short(2),),)), ScoredTokens(0.0, ((short(1),),))], [[0.2, 0.4], [0.3]])

    metrics = batch_metrics(batch, 0.1, [1.0, 0.0])

    assert metrics["reward/mean"] == 0.5
    assert metrics["ppo/kl_answer"] == pytest.approx(0.45)
    assert metrics["ppo/kl_token"] == pytest.approx(0.3)
    assert metrics["ppo/objective"] == pytest.approx(0.5 - 0.045)
    assert metrics["ppo/entropy"] == pytest.approx(0.7)
    assert metrics["critic/value_mean"] == 0.5
    assert metrics["critic/explained_variance"] == pytest.approx(0.0)


def test_explained_variance_of_known_values() -> None:
    returns = torch.tensor([0.0, 1.0, 2.0, 3.0])

    assert explained_variance(returns + 5.0, returns) == pytest.approx(1.0)
    assert explained_variance(returns / 2, returns) == pytest.approx(0.75)
    assert explained_variance(-returns, returns) == pytest.approx(-3.0)
    assert math.isnan(explained_variance(returns, torch.ones(4)))
