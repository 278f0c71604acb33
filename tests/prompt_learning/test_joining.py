"""Which edits that passed side by side go into the next prompt together."""

from __future__ import annotations

import pytest

from groundrule.prompt_learning import testing
from groundrule.prompt_learning.acceptance import Bounds, Standing
from groundrule.prompt_learning.edits import Edit
from groundrule.prompt_learning.joining import TestedEdit, joined
from groundrule.prompt_learning.lint import MOST_LESSONS, Leaks, refusal_of
from groundrule.prompt_learning.playbook import Lesson, Playbook
from groundrule.prompt_learning.state import Proposed
from groundrule.prompt_learning.trial import Seen

KIND, BRIEF = Lesson("L1", "Be kind."), Lesson("L2", "Be brief.")
CITE, DATES = Lesson("L3", "Name the page behind each statement."), Lesson("L4", "Write dates in full.")
STEPS = Lesson("L5", "Mention what comes next.")
BOOK = Playbook((KIND, BRIEF))
DEFAULT = Bounds()


def seen(gain=0.25, words=20.0, scenarios="abcd", **guards):
    return [Seen(one, gain, (20.0, words), guards) for one in scenarios]


def edited(action, lesson, data, book=BOOK):
    """An edit that was accepted on such data."""
    edit = Edit(action, lesson.text if action != "remove" else "", None if action == "add" else lesson.id)
    playbook = book.without(lesson.id) if action == "remove" else book.with_lesson(lesson)
    test = testing.Tested(testing.Candidate("", 0.05), Standing("accepted"), data)
    return TestedEdit(Proposed(edit, ()), test, playbook, lesson.id)


def added(lesson, *, book=BOOK, **more):
    return edited("add", lesson, seen(**more), book)


def together(*passed, refusal=lambda edit, playbook: None, bounds=DEFAULT, book=BOOK):
    return [one.lesson for one in joined(book, passed, refusal, bounds)]


def linted(edit, playbook):
    return refusal_of(edit, playbook, "", Leaks.of([], ""))


def test_of_nothing_comes_nothing():
    assert together() == []


def test_the_best_goes_first():
    passed = [added(CITE, gain=0.25), added(DATES, gain=0.5), added(STEPS, gain=0.125)]
    assert together(*passed) == ["L4", "L3", "L5"]


def test_of_equally_good_ones_that_which_was_proposed_first_goes_first():
    assert together(added(DATES), added(CITE)) == ["L4", "L3"]


def test_each_is_refused_or_not_beside_those_before_it():
    asked = []

    def refusal(edit, playbook):
        asked.append((edit.text, playbook.lessons))

    together(added(CITE), added(DATES), added(STEPS), refusal=refusal)
    assert asked == [(DATES.text, (KIND, BRIEF, CITE)), (STEPS.text, (KIND, BRIEF, CITE, DATES))]


def test_a_change_an_addition_and_a_removal_go_together():
    kinder = Lesson("L1", "Thank people for their patience.")
    passed = [edited("change", kinder, seen(0.5)), added(CITE), edited("remove", BRIEF, seen(0.0))]
    assert together(*passed, refusal=linted) == ["L1", "L3", "L2"]


@pytest.mark.parametrize("action", ["change", "remove"])
def test_an_edit_of_a_lesson_that_a_better_one_touches_is_left_out(action):
    better = edited("change", Lesson("L1", "Be very kind."), seen(0.5))
    assert together(better, edited(action, KIND, seen(0.25)), added(CITE, gain=0.125)) == ["L1", "L3"]


def test_of_two_removals_the_better_one_goes():
    assert together(edited("remove", KIND, seen(0.0)), edited("remove", BRIEF, seen(0.125))) == ["L2"]


def test_a_lesson_that_says_what_a_better_one_says_is_left_out():
    alike = Lesson("L4", "Name the page behind each single statement.")
    assert together(added(alike, gain=0.25), added(CITE, gain=0.5), refusal=linted) == ["L3"]


def test_a_lesson_that_says_what_the_second_best_says_is_left_out():
    alike = Lesson("L5", "Name the page behind each single statement.")
    passed = [added(DATES, gain=0.5), added(CITE, gain=0.25), added(alike, gain=0.125)]
    assert together(*passed, refusal=linted) == ["L4", "L3"]


def test_a_lesson_for_which_a_better_one_left_no_room_is_left_out():
    book = Playbook(tuple(Lesson(f"M{i}", f"Lesson {i}.") for i in range(MOST_LESSONS - 1)))
    passed = [added(CITE, gain=0.5, book=book), added(DATES, gain=0.25, book=book)]
    assert together(*passed, refusal=linted, book=book) == ["L3"]


def test_the_best_is_not_refused_again():
    assert together(added(CITE), refusal=lambda edit, playbook: "no") == ["L3"]


def test_what_is_left_out_keeps_nothing_else_out():
    alike = [
        Lesson("L4", "Name the page of each statement."),
        Lesson("L5", "Name page and paragraph of each statement about money."),
    ]
    passed = [added(CITE, gain=0.5), added(alike[0], gain=0.25), added(alike[1], gain=0.125)]
    assert together(*passed, refusal=linted) == ["L3", "L5"]


# Answers of 20 words may grow to 20 x 1.2 + 5 = 29.


def test_edits_that_lengthen_answers_a_little_together_go_together():
    assert together(added(CITE, words=24.0), added(DATES, words=25.0)) == ["L3", "L4"]


def test_edits_that_lengthen_answers_too_much_together_do_not():
    assert together(added(CITE, words=25.0), added(DATES, words=25.0)) == ["L3"]


def test_how_much_longer_answers_may_grow_together_can_be_said():
    passed = [added(CITE, words=25.0), added(DATES, words=25.0)]
    assert together(*passed, bounds=Bounds(most_longer=0.25)) == ["L3", "L4"]


def test_the_third_is_added_to_both_before_it():
    assert together(*(added(lesson, words=24.0) for lesson in (CITE, DATES, STEPS))) == ["L3", "L4"]


def test_words_of_what_is_left_out_are_not_added():
    passed = [
        added(CITE, gain=0.5, words=25.0),
        added(DATES, gain=0.25, words=26.0),
        added(STEPS, gain=0.125, words=24.0),
    ]
    assert together(*passed) == ["L3", "L5"]


def test_one_that_shortens_answers_makes_room_for_one_that_lengthens_them():
    shorter, longer = edited("remove", BRIEF, seen(0.5, words=14.0)), added(CITE, gain=0.25, words=28.0)
    assert together(shorter, longer, added(DATES, gain=0.125, words=27.0)) == ["L2", "L3", "L4"]


FACTS = Bounds(guard_margin=0.125)


def test_edits_that_lower_a_guard_by_its_margin_together_go_together():
    assert together(added(CITE, facts=-0.0625), added(DATES, facts=-0.0625), bounds=FACTS) == ["L3", "L4"]


def test_edits_that_lower_a_guard_further_together_do_not():
    assert together(added(CITE, facts=-0.0625), added(DATES, facts=-0.125), bounds=FACTS) == ["L3"]


def test_each_guard_has_a_sum_of_its_own():
    passed = [added(CITE, facts=-0.125, style=0.0), added(DATES, facts=0.0, style=-0.125)]
    assert together(*passed, bounds=FACTS) == ["L3", "L4"]


@pytest.mark.parametrize("gains", [(0.5, 0.25), (0.25, 0.5)], ids=["the wider first", "the wider last"])
def test_scenarios_that_only_one_was_tested_on_do_not_count(gains):
    wide, narrow = gains
    data = [*seen(wide, words=25.0), *seen(wide, words=20.0, scenarios="efghijkl")]
    # On the four that both have answers grow to 30 words; on all twelve they would to 23.
    assert len(together(edited("add", CITE, data), added(DATES, gain=narrow, words=25.0))) == 1


def test_edits_without_a_common_scenario_do_not_go_together():
    assert together(added(CITE, scenarios="abcd"), added(DATES, scenarios="efgh")) == ["L3"]


OTHER = Playbook((KIND, Lesson("L9", "Be exact.")))


def test_an_addition_goes_to_the_end_of_another_playbook():
    assert added(CITE).onto(OTHER).lessons == (*OTHER.lessons, CITE)


def test_a_change_takes_its_place_in_another_playbook():
    kinder = Lesson("L1", "Be very kind.")
    assert edited("change", kinder, seen()).onto(OTHER).lessons == (kinder, OTHER.lessons[1])


def test_a_removal_takes_its_lesson_from_another_playbook():
    assert edited("remove", KIND, seen()).onto(OTHER).lessons == (OTHER.lessons[1],)
