"""The settings of a prompt learner."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from groundrule.prompt_learning.acceptance import Bounds
from groundrule.prompt_learning.settings import PromptSettings


@pytest.mark.parametrize(
    ("scenarios", "looks"),
    [
        (4, [4]),
        (8, [8]),
        (9, [8, 9]),
        (16, [8, 16]),
        (20, [8, 16, 20]),
        (32, [8, 16, 32]),
        (100, [8, 16, 32]),
    ],
)
def test_looks_are_as_far_as_the_scenarios_go(scenarios, looks):
    assert PromptSettings().looks_at(scenarios) == looks


def test_a_single_look_is_at_most_all_scenarios():
    settings = PromptSettings(looks=(10,))
    assert (settings.looks_at(6), settings.looks_at(50)) == ([6], [10])


@pytest.mark.parametrize("looks", [(), (8, 8), (16, 8), (0, 4)])
def test_looks_that_do_not_rise_are_refused(looks):
    with pytest.raises(ValidationError, match="numbers of scenarios that rise"):
        PromptSettings(looks=looks)


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha": 0.0},
        {"alpha": 1.0},
        {"edits": 4},
        {"edits": 0},
        {"rounds": 0},
        {"attempts": 0},
        {"margins": 0.1},
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(wrong):
    with pytest.raises(ValidationError):
        PromptSettings(**wrong)


@pytest.mark.parametrize(("rounds", "edits", "half"), [(8, 3, 6), (4, 3, 3), (5, 3, 3), (4, 1, 1), (1, 1, 1)])
def test_half_of_alpha_is_for_a_quarter_of_the_tests_of_full_rounds(rounds, edits, half):
    assert PromptSettings(rounds=rounds, edits=edits).half_of_tests == half


def test_the_bounds_of_a_test_are_those_of_the_settings():
    settings = PromptSettings(margin=0.1, guard_margin=0.2, most_longer=0.3)
    assert settings.bounds == Bounds(margin=0.1, guard_margin=0.2, most_longer=0.3)
