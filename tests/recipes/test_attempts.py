"""Several verified answers to each problem: pass@k without bias, and the vote."""

from __future__ import annotations

import pytest

from groundrule.data import Scenario, Score, Trajectory, TrajectoryGroup
from groundrule.recipes.attempts import record, vote_by

PROBLEMS = [
    Scenario(id="one", question="1 + 1?", reference="2"),
    Scenario(id="two", question="2 + 2?", reference="4"),
]


def attempts(*answers: str) -> TrajectoryGroup:
    return TrajectoryGroup(
        [Trajectory(messages_and_choices=[{"role": "assistant", "content": answer}]) for answer in answers]
    )


def kept(verdicts: list[list[float | None]], answers: list[list[str]] | None = None):
    scores = [[Score.none("timeout") if v is None else Score(value=v) for v in row] for row in verdicts]
    texts = answers or [["\\boxed{2}"] * len(row) for row in verdicts]
    return record(
        PROBLEMS, [attempts(*row) for row in texts], scores, attempts=len(verdicts[0]), vote=vote_by("math")
    )


def test_pass_at_k_is_the_mean_of_unbiased_estimates():
    # One of four right: pass@1 1/4, pass@2 1 - C(3,2)/C(4,2) = 1/2. None right: 0.
    found = kept([[1, 0, 0, 0], [0, 0, 0, 0]])
    assert found["pass_at"] == {"1": 0.125, "2": 0.25, "4": 0.5}


def test_the_number_of_attempts_is_a_k_even_where_it_is_no_power_of_two():
    assert list(kept([[1, 0, 0], [1, 1, 1]])["pass_at"]) == ["1", "2", "3"]


def test_partial_credit_is_not_right():
    assert kept([[0.9, 0.5], [1, 1]])["pass_at"]["1"] == 0.5


def test_an_attempt_that_cannot_be_decided_is_not_right_and_is_counted():
    found = kept([[1, None], [1, 1]])
    assert (found["unscored"], found["pass_at"]) == (1, {"1": 0.75, "2": 1.0})
    assert (found["scenarios"][0]["attempts"], found["scenarios"][0]["verdicts"]) == (2, 1)


def test_a_problem_of_which_nothing_could_be_decided_is_left_out():
    assert kept([[None, None], [1, 0]])["pass_at"] == {"1": 0.5, "2": 1.0}


def test_a_problem_with_failed_attempts_is_left_out_of_the_larger_k_only():
    scores = [[Score(value=0.0)], [Score(value=1.0), Score(value=1.0)]]
    groups = [attempts("\\boxed{3}"), attempts("\\boxed{4}", "\\boxed{4}")]
    found = record(PROBLEMS, groups, scores, attempts=2, vote=vote_by("math"))
    assert found["pass_at"] == {"1": 0.5, "2": 1.0}


def test_without_any_verdict_the_numbers_are_unknown_and_not_zero():
    found = kept([[None, None], [None, None]])
    assert (found["pass_at"], found["majority"], found["unscored"]) == ({"1": None, "2": None}, None, 4)


def test_the_vote_is_of_what_the_boxes_hold():
    found = kept(
        [[1, 1, 0], [0, 0, 1]],
        [["\\boxed{2}", "It is \\boxed{ 2 }", "\\boxed{3}"], ["\\boxed{5}", "\\boxed{5}", "\\boxed{4}"]],
    )
    assert [row["majority"] for row in found["scenarios"]] == [1.0, 0.0]
    assert found["majority"] == 0.5


@pytest.mark.parametrize(
    ("verifier", "answer", "vote"),
    [
        ("math", "so \\boxed{4}", "4"),
        ("math", "four", None),
        ("exact", "  Paris\n", "paris"),
        (None, "", None),
    ],
)
def test_an_answer_votes_for(verifier, answer, vote):
    assert vote_by(verifier)(answer) == vote
