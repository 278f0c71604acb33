"""A test of a new prompt, look by look, with numbers worked by hand."""

from __future__ import annotations

import json

import pytest

from groundrule.prompt_learning.acceptance import Bounds, Look, Standing, broken_guard, looked
from groundrule.prompt_learning.trial import Seen

DEFAULT = Bounds()


def data(*differences, words=(20.0, 20.0), **guards):
    return [Seen(f"s{i}", difference, words, guards) for i, difference in enumerate(differences)]


def outcome(given, level=0.05, *, is_last=False, is_removal=False, bounds=DEFAULT):
    return looked(Standing(), given, level, is_last=is_last, is_removal=is_removal, bounds=bounds).outcome


def test_five_gains_of_five_are_enough_at_a_level_of_one_in_32():
    assert outcome(data(*[0.25] * 5), 1 / 32) == "accepted"


def test_a_level_just_below_is_not_reached():
    assert outcome(data(*[0.25] * 5), 0.03) == "open"


def test_what_is_better_but_not_shown_stays_open_until_the_last_look():
    assert outcome(data(0.5, 0.25, -0.25, 0.25)) == "open"


def test_at_the_last_look_it_is_not_shown():
    after = looked(Standing(), data(0.5, 0.25, -0.25, 0.25), 0.05, is_last=True)
    # The sum is 0.75; of 16 signs it is reached by 1.25 and, three times, by 0.75.
    assert (after.outcome, after.reason) == ("not shown", "+0.188 on 4 scenarios, p 0.25, needed 0.05")


@pytest.mark.parametrize("differences", [(0.5, -0.25, -0.25, 0.0), (-0.25,) * 4], ids=["level", "worse"])
@pytest.mark.parametrize("is_last", [False, True])
def test_what_is_no_better_on_average_is_given_up(differences, is_last):
    assert outcome(data(*differences), is_last=is_last) == "futile"


def test_why_it_was_given_up_is_said():
    after = looked(Standing(), data(-0.25, -0.25, 0.0, 0.0), 0.05, is_last=False)
    assert after.reason == "no better: -0.125 on 4 scenarios"


def test_three_scenarios_accept_nothing():
    assert outcome(data(0.5, 0.5, 0.5), 0.9) == "open"


def test_four_scenarios_may():
    assert outcome(data(0.5, 0.5, 0.5, 0.5), 1 / 16) == "accepted"


def test_three_scenarios_give_nothing_up_before_the_last_look():
    assert outcome(data(-0.5, -0.5, -0.5)) == "open"
    assert outcome(data(-0.5, -0.5, -0.5), is_last=True) == "futile"


def test_at_the_last_look_three_scenarios_are_not_enough():
    assert outcome(data(0.5, 0.5, 0.5), 0.9, is_last=True) == "not shown"


@pytest.mark.parametrize("is_last", [False, True])
def test_where_nothing_was_scored_nothing_is_decided(is_last):
    after = looked(Standing(), [], 0.05, is_last=is_last)
    assert (after.outcome, after.reason) == ("open", "no scenario has scores under both prompts")


def test_a_test_without_a_level_accepts_nothing():
    assert outcome(data(*[0.5] * 20), 0.0) == "open"


def test_each_look_is_kept_with_what_it_was_held_against():
    first = looked(Standing(), data(0.5, 0.25, -0.25, 0.25), 0.01, is_last=False)
    second = looked(first, data(*[0.5] * 8), 0.02, is_last=True)
    assert second.looks == (Look(4, 0.1875, 0.25, 0.01), Look(8, 0.5, 1 / 256, 0.02))
    assert second.outcome == "accepted"


def test_a_standing_goes_into_a_file():
    after = looked(Standing(), data(*[0.5] * 4), 0.25, is_last=False)
    assert json.loads(json.dumps(after.to_dict())) == {
        "outcome": "accepted",
        "looks": [{"scenarios": 4, "mean": 0.5, "p": 0.0625, "level": 0.25}],
        "reason": "",
    }


REMOVAL = {"is_removal": True, "bounds": Bounds(margin=0.125)}


def test_a_removal_is_accepted_where_nothing_changes():
    # Every difference of 0 lies 0.125 above the margin: one of 16.
    assert outcome(data(0.0, 0.0, 0.0, 0.0), 1 / 16, **REMOVAL) == "accepted"


def test_a_removal_may_be_a_little_worse():
    assert outcome(data(*[-0.0625] * 5), 1 / 32, **REMOVAL) == "accepted"


def test_a_removal_that_is_worse_by_the_margin_is_given_up():
    assert outcome(data(*[-0.125] * 4), 1.0, **REMOVAL) == "futile"


def test_a_removal_must_be_shown_too():
    # From the margin: 0.375, 0.125, 0.125 and -0.125, whose sum of 0.5 four of 16 signs reach.
    after = looked(Standing(), data(0.25, 0.0, 0.0, -0.25), 0.05, is_last=True, **REMOVAL)
    assert (after.outcome, after.looks[0].p) == ("not shown", 0.25)


def test_the_margin_is_for_removals_alone():
    assert outcome(data(0.0, 0.0, 0.0, 0.0), 1.0, bounds=Bounds(margin=0.125)) == "futile"


def test_a_prompt_that_makes_answers_much_longer_is_held_back():
    after = looked(Standing(), data(*[0.5] * 4, words=(20.0, 30.0)), 0.5, is_last=False)
    assert (after.outcome, after.reason) == ("guarded", "answers grew from 20 to 30 words")


def test_answers_may_grow_by_a_fifth_and_five_words():
    assert broken_guard(data(0.5, words=(20.0, 29.0)), Bounds()) is None
    assert broken_guard(data(0.5, words=(20.0, 29.25)), Bounds()) == "answers grew from 20 to 29 words"


def test_short_answers_may_grow_by_five_words():
    assert broken_guard(data(0.5, words=(0.0, 5.0)), Bounds()) is None


def test_words_count_on_average():
    given = [Seen("a", 0.5, (10.0, 40.0)), Seen("b", 0.5, (40.0, 10.0))]
    assert broken_guard(given, Bounds()) is None


def test_how_much_answers_may_grow_can_be_said():
    given = data(0.5, words=(20.0, 26.0))
    assert broken_guard(given, Bounds()) is None
    assert broken_guard(given, Bounds(most_longer=0.0)) == "answers grew from 20 to 26 words"


def test_a_guard_that_falls_by_more_than_its_margin_holds_a_prompt_back():
    after = looked(Standing(), data(*[0.5] * 4, facts=-0.25), 0.5, is_last=False)
    assert (after.outcome, after.reason) == ("guarded", "facts is -0.250")


def test_a_guard_may_fall_by_its_margin():
    assert broken_guard(data(0.5, 0.5, facts=-0.125), Bounds(guard_margin=0.125)) is None


def test_a_guard_counts_where_it_gave_scores():
    given = [*data(0.5, facts=-0.25), *data(0.5, 0.5, 0.5)]
    assert broken_guard(given, Bounds(guard_margin=0.125)) == "facts is -0.250"


def test_guards_hold_back_only_what_would_be_accepted():
    assert outcome(data(0.5, 0.25, -0.25, 0.25, facts=-1.0)) == "open"


def test_guards_hold_removals_back_too():
    assert outcome(data(*[0.0] * 4, facts=-0.5), 0.5, **REMOVAL) == "guarded"
