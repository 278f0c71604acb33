"""A prompt file as the agent reads it, and as a person edits it."""

from __future__ import annotations

import json

import pytest

from groundrule._util.digest import digest
from groundrule.errors import DataError
from groundrule.prompt_learning.playbook import (
    HEADING,
    Lesson,
    LessonIds,
    Playbook,
    read_playbook,
)

SPEC = "You answer questions about orders.\nUse the passage only."
CITE = Lesson("L1", "Quote the sentence that the answer rests on.", helpful=5, harmful=1)
SHORT = Lesson("L2", "Answer in two sentences at most.", helpful=2)
BOOK = Playbook((CITE, SHORT))
PROMPT = """\
You answer questions about orders.
Use the passage only.

Lessons from earlier work:
1. Quote the sentence that the answer rests on.
2. Answer in two sentences at most."""


def edited(*lines, known=BOOK, given=2, spec=SPEC):
    """What is read of a file in which these lines stand below the heading."""
    return read_playbook("\n".join([spec, "", HEADING, *lines]), spec, LessonIds(given), known=known)


def names_and_texts(playbook):
    return [(lesson.id, lesson.text) for lesson in playbook.lessons]


def test_lessons_stand_numbered_below_the_spec():
    assert BOOK.below(SPEC) == PROMPT


def test_without_lessons_the_prompt_is_the_spec_to_the_letter():
    assert Playbook().below(SPEC + "\n") == SPEC + "\n"


def test_without_a_spec_the_prompt_begins_with_the_lessons():
    assert Playbook((SHORT,)).below("") == f"{HEADING}\n1. Answer in two sentences at most."


@pytest.mark.parametrize("playbook", [BOOK, Playbook((SHORT,)), Playbook()], ids=["two", "one", "none"])
@pytest.mark.parametrize("spec", [SPEC, SPEC + "\n", ""], ids=["spec", "spec with a newline", "no spec"])
def test_what_is_written_is_read_back(playbook, spec):
    assert read_playbook(playbook.below(spec), spec, LessonIds(2), known=playbook) == playbook


def test_a_learned_prompt_may_be_the_spec_of_further_lessons():
    spec, playbook = PROMPT, Playbook((Lesson("L3", "Name the order number in full."),))
    assert read_playbook(playbook.below(spec), spec, LessonIds(3), known=playbook) == playbook
    assert read_playbook(spec, spec, LessonIds(3)) == Playbook()


def test_a_new_line_becomes_a_lesson_with_an_id_of_its_own():
    read = edited(f"1. {CITE.text}", "2. Give dates in full.", f"3. {SHORT.text}")
    assert names_and_texts(read) == [("L1", CITE.text), ("L3", "Give dates in full."), ("L2", SHORT.text)]


def test_a_line_that_is_gone_is_a_lesson_that_is_gone():
    assert edited(f"1. {SHORT.text}") == Playbook((SHORT,))


def test_lessons_may_change_places():
    assert edited(f"1. {SHORT.text}", f"2. {CITE.text}") == Playbook((SHORT, CITE))


def test_counters_stay_with_the_words():
    read = edited(f"7. {CITE.text}")
    assert (read.lessons[0].helpful, read.lessons[0].harmful) == (5, 1)


def test_other_words_begin_with_counters_of_their_own():
    read = edited("1. Quote the sentence that the answer rests on, in full.")
    assert read.lessons == (Lesson("L3", "Quote the sentence that the answer rests on, in full."),)


def test_all_lines_gone_leave_an_empty_playbook():
    assert edited() == Playbook()


def test_the_heading_may_go_with_the_lessons():
    assert read_playbook(SPEC, SPEC, LessonIds()) == Playbook()


@pytest.mark.parametrize("mark", ["1.", "1)", "-", "*", "•", "  12."])
def test_lessons_may_be_listed_in_other_ways(mark):
    assert edited(f"{mark} {SHORT.text}") == Playbook((SHORT,))


def test_blank_lines_and_spaces_around_do_not_matter():
    assert edited("", f"  1.   {CITE.text}  ", "", f"2. {SHORT.text}", "") == BOOK


def test_an_edited_spec_is_refused_with_what_to_do():
    text = PROMPT.replace("the passage only", "whatever you know")
    with pytest.raises(
        DataError, match=r"mine\.md: the text above .* put it back, and change the system prompt where"
    ):
        read_playbook(text, SPEC, LessonIds(), source="mine.md")


def test_a_text_below_another_spec_is_refused():
    with pytest.raises(DataError, match="is not the system prompt that answers are judged by"):
        read_playbook("Other spec.", SPEC, LessonIds())


def test_a_lesson_that_stands_there_twice_is_refused():
    with pytest.raises(DataError, match=r"'Answer in two sentences at most\.' stands there twice; leave one"):
        edited(f"1. {SHORT.text}", f"2. {SHORT.text}")


def test_a_line_that_is_no_lesson_is_refused_by_its_place():
    with pytest.raises(
        DataError, match=r"mine.md, line 2 below .*'and so on' is no lesson; write '1. ...', one a line"
    ):
        read_playbook(f"{SPEC}\n\n{HEADING}\n1. One.\nand so on", SPEC, LessonIds(), source="mine.md")


def test_ids_are_given_once():
    ids = LessonIds(4)
    assert [ids.next(), ids.next(), ids.given] == ["L5", "L6", 6]


def test_a_lesson_of_a_known_id_takes_the_place_of_the_old_one():
    assert BOOK.with_lesson(Lesson("L1", "New.")) == Playbook((Lesson("L1", "New."), SHORT))


def test_a_lesson_of_a_new_id_comes_last():
    assert BOOK.with_lesson(Lesson("L9", "New.")).lessons[-1] == Lesson("L9", "New.")


def test_a_lesson_is_taken_out_by_its_id():
    assert BOOK.without("L1") == Playbook((SHORT,))
    assert BOOK.without("L7") == BOOK


def test_counts_add_up():
    assert BOOK.counted("L2", helpful=3, harmful=4).lesson("L2") == Lesson("L2", SHORT.text, 5, 4)


def test_counts_of_a_lesson_that_is_not_there_change_nothing():
    assert BOOK.counted("L7", helpful=3, harmful=4) == BOOK


def test_the_hash_is_of_the_words_alone():
    same = Playbook((Lesson("L8", CITE.text), Lesson("L9", SHORT.text, harmful=7)))
    assert same.content_hash == BOOK.content_hash


@pytest.mark.parametrize(
    "other", [Playbook((SHORT, CITE)), Playbook((CITE,)), Playbook()], ids=["order", "fewer", "none"]
)
def test_other_words_have_another_hash(other):
    assert other.content_hash != BOOK.content_hash


def test_a_hash_is_the_beginning_of_the_sha_256():
    assert digest("abc") == "ba7816bf8f01cfea"


def test_a_playbook_survives_a_file():
    assert Playbook.from_dict(json.loads(json.dumps(BOOK.to_dict()))) == BOOK
