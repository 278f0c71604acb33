"""Which answers of a step are trained on: those that were cut, and advantages whitened over the step."""

from __future__ import annotations

import pytest
from openai.types.chat.chat_completion import Choice

from groundrule.data.group import TrajectoryGroup
from groundrule.data.trajectory import Trajectory
from groundrule.training.batch import StepPlan, is_truncated, plan_step
from groundrule.training.lora_trainer import TrainerSettings
from tiny import ASK, tiny_model


def answer(reward: float, *, tokens: int = 2, cut: bool = False) -> Trajectory:
    ids = list(range(40, 40 + tokens))
    choice = Choice.model_validate(
        {
            "index": 0,
            "finish_reason": "length" if cut else "stop",
            "message": {"role": "assistant", "content": "x"},
            "logprobs": {"content": [{"token": "x", "logprob": -1.0, "top_logprobs": []} for _ in ids]},
            "token_ids": ids,
            "prompt_token_ids": [1, 2],
        }
    )
    return Trajectory(messages_and_choices=[*ASK, choice], reward=reward)


def plan(*groups: list[Trajectory], **settings: object) -> StepPlan:
    return plan_step(
        [TrajectoryGroup(group) for group in groups],
        TrainerSettings(advantage="mean_only", **settings),
        tiny_model(),
    )


def pushes(*groups: list[Trajectory], **settings: object) -> list[float]:
    return [item.advantage for item in plan(*groups, **settings).items]


def test_an_answer_cut_at_its_limit_is_trained_on_like_any_other():
    assert pushes([answer(1.0), answer(0.0), answer(0.2, cut=True)]) == pytest.approx([0.6, -0.4, -0.2])


def test_a_masked_answer_counts_in_the_mean_and_is_not_pushed():
    assert pushes([answer(1.0), answer(0.0), answer(0.2, cut=True)], truncated="mask") == pytest.approx(
        [0.6, -0.4]
    )


def test_a_dropped_answer_counts_for_nothing():
    dropped = plan([answer(1.0), answer(0.0), answer(0.2, cut=True)], truncated="drop")
    assert [item.advantage for item in dropped.items] == [0.5, -0.5]
    assert (dropped.metrics["train/unscored"], dropped.metrics["train/truncated"]) == (1.0, 1.0)


def test_a_group_of_dropped_answers_is_one_without_signal():
    dropped = plan([answer(1.0, cut=True), answer(0.0, cut=True)], truncated="drop")
    assert (dropped.items, dropped.metrics["train/groups_without_signal"]) == ([], 1.0)


def test_only_the_last_turn_says_whether_an_answer_was_cut():
    early = Trajectory(
        messages_and_choices=[
            *answer(0, cut=True).messages_and_choices,
            *answer(0).messages_and_choices,
        ]
    )
    assert (is_truncated(early), is_truncated(answer(0, cut=True))) == (False, True)


def test_messages_that_were_not_sampled_are_not_cut():
    assert not is_truncated(Trajectory(messages_and_choices=ASK))


def test_whitened_advantages_have_mean_zero_and_variance_one_over_tokens():
    # Tokens 1, 1 and 3 with 1/3, -2/3 and 1/3: mean 2/15, unbiased variance 0.2.
    found = pushes([answer(1.0, tokens=1), answer(0.0, tokens=1), answer(1.0, tokens=3)], whiten=True)
    assert found == pytest.approx([0.44721, -1.78885, 0.44721], abs=1e-5)


def test_answers_of_a_level_group_count_in_the_variance_and_stay_untouched():
    # Beside 1/2 and -1/2 on a token each stand two tokens of 0: the variance over four tokens is 1/6.
    found = pushes(
        [answer(1.0, tokens=1), answer(0.0, tokens=1)],
        [answer(1.0, tokens=1), answer(1.0, tokens=1)],
        whiten=True,
    )
    assert found == pytest.approx([1.22474, -1.22474], abs=1e-5)


def test_a_step_of_level_groups_stays_without_items_when_whitened():
    assert pushes([answer(1.0), answer(1.0)], whiten=True) == []
