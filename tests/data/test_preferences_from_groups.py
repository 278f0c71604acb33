"""Judged groups as rankings."""

from __future__ import annotations

import pytest

from fakes import chat
from groundrule.data import Trajectory, TrajectoryGroup
from groundrule.data.judged_rankings import rankings_from_groups
from groundrule.errors import ConfigError, DataError


def group(*scored, scenario_id="s1"):
    """(answer, score) pairs; a score of None is none."""
    members = [
        Trajectory(
            messages_and_choices=chat(text), **({"unscored": "no"} if score is None else {"reward": score})
        )
        for text, score in scored
    ]
    return TrajectoryGroup(members, scenario_id=scenario_id)


def order(ranking):
    text = {answer.id: answer.text for answer in ranking.answers}
    return [[text[name] for name in tier] for tier in ranking.order]


def only(made):
    [ranking] = made.rankings
    return ranking


def test_the_scores_give_the_order_and_the_margins():
    made = rankings_from_groups(
        [group(("a", 0.25), ("b", 1.0), ("c", 0.5))], margin=0.05, annotator="openai/o3"
    )
    ranking = only(made)
    assert order(ranking) == [["b"], ["c"], ["a"]]
    assert [p.margin for p in ranking.pairs()] == [0.5, 0.75, 0.25]
    assert (ranking.source, ranking.annotator, ranking.scenario_id) == ("ruler", "openai/o3", "s1")
    assert ranking.prompt == chat("")[:2]
    assert made.left_out == []


def test_scores_closer_than_the_margin_are_tied_through_those_between_them():
    made = rankings_from_groups([group(("a", 0.50), ("b", 0.54), ("c", 0.58), ("d", 0.9))], margin=0.05)
    assert order(only(made)) == [["d"], ["c", "b", "a"]]
    assert made.chained == 1
    assert min(p.margin for p in only(made).pairs()) >= 0.05


def test_a_difference_of_just_the_margin_makes_a_pair_whatever_floats_make_of_it():
    assert 0.85 - 0.8 < 0.05
    made = rankings_from_groups([group(("a", 0.85), ("b", 0.8))], margin=0.05)
    assert order(only(made)) == [["a"], ["b"]]


def test_equal_scores_are_tied_at_any_margin():
    assert order(only(rankings_from_groups([group(("a", 0.5), ("b", 0.5))], margin=0))) == [["a", "b"]]


def test_unscored_and_empty_members_are_left_out_and_counted():
    made = rankings_from_groups([group(("a", 1), ("b", None), ("", 0.5), ("c", 0))], margin=0.1)
    assert order(only(made)) == [["a"], ["c"]]
    assert made.left_out == ["1 answers without a score", "1 empty answers"]


def test_identical_answers_count_once_with_their_mean_score():
    made = rankings_from_groups([group(("a", 0.5), ("b", 0.6), ("a", 1.0))], margin=0.1)
    assert [(a.text, a.score) for a in only(made).answers] == [("a", 0.75), ("b", 0.6)]
    assert made.repeated == 1


def test_groups_that_give_no_ranking_are_counted():
    other = TrajectoryGroup(
        [
            Trajectory(messages_and_choices=chat("a", question="Refunds?"), reward=1),
            Trajectory(messages_and_choices=chat("b", system="Be kind.", question="Returns?"), reward=0),
        ],
        scenario_id="mixed",
    )
    made = rankings_from_groups([group(("a", 1), ("a", 1)), group(), other, group(("a", None))], margin=0.1)
    assert made.rankings == []
    assert (made.groups, made.too_few, made.differing) == (4, 3, ["mixed"])
    assert "1 groups whose members answer different prompts (mixed)" in made.left_out


def test_conversations_part_where_the_agent_first_says_something_else():
    opening = [{"role": "user", "content": "Refunds?"}]

    def member(*turns, reward):
        said = [{"role": r, "content": c} for r, c in turns]
        return Trajectory(messages_and_choices=[*opening, *said], reward=reward)

    both = TrajectoryGroup(
        [
            member(("assistant", "Which order?"), ("user", "Seven."), ("assistant", "Yes."), reward=1),
            member(("assistant", "Which order?"), ("user", "Eight."), ("assistant", "No."), reward=0),
        ]
    )
    ranking = only(rankings_from_groups([both], margin=0.1))
    assert ranking.prompt == opening
    assert [answer.text for answer in ranking.answers] == ["Which order?\n\nYes.", "Which order?\n\nNo."]


def test_a_reward_that_is_no_number_is_refused():
    with pytest.raises(DataError, match="scenario 's1' has the reward nan"):
        rankings_from_groups([group(("a", float("nan")), ("b", 1))], margin=0.1)


@pytest.mark.parametrize("margin", [-0.1, float("nan"), float("inf")])
def test_a_margin_that_cannot_be_is_refused(margin):
    with pytest.raises(ConfigError, match="margin is"):
        rankings_from_groups([], margin=margin)
