"""pass@k and majority votes."""

from __future__ import annotations

from itertools import combinations
from statistics import fmean

import pytest

from groundrule.algorithms.pass_at_k import majority_is_right, pass_at_k


@pytest.mark.parametrize(
    ("attempts", "right", "k", "value"),
    [(16, 4, 1, 0.25), (16, 4, 16, 1.0), (16, 0, 8, 0.0), (5, 2, 2, 0.7), (10, 3, 4, 1 - 35 / 210)],
)
def test_pass_at_k_of_known_counts(attempts, right, k, value):
    assert pass_at_k(attempts, right, k) == pytest.approx(value)


def test_pass_at_k_is_the_mean_over_all_choices_of_k_attempts():
    outcomes = [True, False, False, True, False, False]
    drawn = [any(chosen) for chosen in combinations(outcomes, 3)]
    assert pass_at_k(6, 2, 3) == pytest.approx(fmean(drawn))


@pytest.mark.parametrize(("attempts", "right", "k"), [(4, 1, 5), (4, 1, 0), (4, 5, 1), (0, 0, 1)])
def test_what_cannot_be_estimated_is_refused(attempts, right, k):
    with pytest.raises(ValueError, match=r"cannot be"):
        pass_at_k(attempts, right, k)


@pytest.mark.parametrize(
    ("answers", "right", "value"),
    [
        (["7", "7", "9"], [True, True, False], 1.0),
        (["7", "9", "9"], [True, False, False], 0.0),
        (["7", "9"], [True, False], 0.5),
        (["7", None, None, None], [True, False, False, False], 1.0),
        ([None, None], [False, False], 0.0),
    ],
)
def test_the_most_frequent_answer_decides(answers, right, value):
    assert majority_is_right(answers, right) == value
