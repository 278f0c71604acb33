"""Learned values as scores: the scale, and what has none."""

from __future__ import annotations

import math

import pytest

from groundrule.data.group import TrajectoryGroup
from groundrule.data.trajectory import Trajectory
from groundrule.rewards.jury import Juror, Jury
from groundrule.rewards.learned import LearnedReward, Value, ValueScale


class ByLength:
    """One for every letter; "?" has no value and "nan" a bad one."""

    scale = ValueScale(mean=4.0, deviation=2.0)

    def values(self, conversations):
        return [self._one(c.messages[-1]["content"]) for c in conversations]

    def _one(self, text):
        if text == "?":
            return "the answer is a riddle"
        return Value(math.nan if text == "nan" else float(len(text)), tokens=len(text))


def group(*answers):
    return TrajectoryGroup(
        [
            Trajectory(
                messages_and_choices=[
                    {"role": "user", "content": "Refunds?"},
                    {"role": "assistant", "content": text},
                ]
            )
            for text in answers
        ]
    )


async def test_an_average_answer_gets_a_half_and_a_deviation_more_gets_0_73():
    average, better = await LearnedReward(ByLength()).score(group("four", "sixsix"))
    assert average.value == 0.5
    assert better.value == pytest.approx(1 / (1 + math.exp(-1)))


async def test_the_raw_value_is_kept_and_nothing_is_paid():
    [score] = await LearnedReward(ByLength()).score(group("sixsix"))
    assert score.parts == {"raw": 6.0, "tokens": 6.0}
    assert score.cost == 0.0
    assert score.explanation == "value +6.000, +1.00 deviations from the mean"


async def test_an_answer_without_a_value_has_no_score_and_the_reason():
    riddle, fine, broken = await LearnedReward(ByLength()).score(group("?", "four", "nan"))
    assert (riddle.value, riddle.reason) == (None, "the answer is a riddle")
    assert fine.value == 0.5
    assert broken.reason == "the reward model's value is nan, which is no number"


async def test_it_is_a_juror_like_any_other():
    jury = Jury([Juror("learned", LearnedReward(ByLength())), Juror("again", LearnedReward(ByLength()))])
    scores = await jury.score(group("four", "sixsix"))
    assert [s.value for s in scores] == pytest.approx([0.5, 0.731059], abs=1e-6)


def test_the_scale_of_values_that_are_all_alike_has_deviation_1():
    assert ValueScale.of([2.0, 2.0]) == ValueScale(mean=2.0, deviation=1.0)
    assert ValueScale.of([1.0, 3.0]) == ValueScale(mean=2.0, deviation=1.0)


def test_far_values_stay_inside_0_and_1_in_order():
    scale = ValueScale()
    found = [scale.unit(raw) for raw in (-1000.0, -10.0, 0.0, 10.0, 1000.0)]
    assert found == sorted(found) and found[0] >= 0 and found[-1] <= 1
