"""Scores become rewards in one place."""

import pytest

from fakes import group_of
from groundrule.data import Score
from groundrule.rewards import apply_scores


def test_scores_parts_and_cost_are_kept_under_the_scorers_name():
    scores = [Score(value=0.5, explanation="x", parts={"raw": 1.9}, cost=0.01), Score(value=2.0, cost=0.01)]
    judged = apply_scores(group_of("a", "b"), scores, name="likelihood")
    assert judged.rewards == [0.5, 2.0]
    assert judged.trajectories[0].metrics == {
        "independent_reward": 0.0,
        "likelihood_score": 0.5,
        "likelihood/raw": 1.9,
    }
    assert judged.trajectories[0].logs == ["LIKELIHOOD explanation: x"]
    assert judged.metrics == {"likelihood_cost_usd": 0.02}


def test_an_unknown_cost_is_not_written():
    judged = apply_scores(group_of("a", "b"), [Score(value=1, cost=0.1), Score(value=0)], name="ruler")
    assert judged.metrics == {}


def test_one_member_without_a_score_leaves_the_others_scored():
    judged = apply_scores(group_of("a", "b"), [Score.none("judge abstained"), Score(value=1.0)], name="ruler")
    assert judged.rewards == [None, 1.0]
    assert judged.trajectories[0].unscored == "judge abstained"
    assert judged.trajectories[0].logs == ["RULER: not scored: judge abstained"]


def test_a_wrong_number_of_scores_is_refused():
    with pytest.raises(ValueError, match="gave 1 scores for a group of 2"):
        apply_scores(group_of("a", "b"), [Score(value=1.0)], name="mine")
