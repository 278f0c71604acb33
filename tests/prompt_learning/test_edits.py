"""Edits as a reflection model writes them: what is taken, what is refused, and what it is told to write."""

from __future__ import annotations

import json

import jsonschema
import pytest

from groundrule.data.protocols import ChatReply
from groundrule.errors import JudgeReplyError
from groundrule.prompt_learning.edits import Edit, edits_format, read_edits
from groundrule.prompt_learning.playbook import Lesson, LessonIds, Playbook

BOOK = Playbook((Lesson("L1", "Cite the passage.", helpful=4), Lesson("L2", "Be brief.", harmful=2)))
SHOWN = {"g1", "g2", "g5"}
ADD = {
    "action": "add",
    "lesson": None,
    "text": "Give dates in full.",
    "rationale": "They were cut.",
    "evidence": ["g1"],
}
CHANGE = {**ADD, "action": "change", "lesson": "L2", "evidence": ["g1", "g5"]}
REMOVE = {**ADD, "action": "remove", "lesson": "L1", "text": "", "evidence": []}


def read(*edits, playbook=BOOK):
    return read_edits(ChatReply(json.dumps({"edits": list(edits)})), playbook, SHOWN)


def kind_of(content):
    with pytest.raises(JudgeReplyError) as caught:
        read_edits(ChatReply(content), BOOK, SHOWN)
    return caught.value.kind


def test_an_addition_is_read():
    assert read(ADD) == [Edit("add", "Give dates in full.", None, "They were cut.", ("g1",))]


def test_a_change_is_read():
    assert read(CHANGE) == [Edit("change", "Give dates in full.", "L2", "They were cut.", ("g1", "g5"))]


def test_a_removal_is_read():
    assert read(REMOVE) == [Edit("remove", "", "L1", "They were cut.")]


def test_no_edits_are_an_answer():
    assert read() == []


def test_edits_keep_their_order():
    assert [edit.action for edit in read(REMOVE, ADD, CHANGE)] == ["remove", "add", "change"]


def test_text_around_the_object_does_not_matter():
    reply = ChatReply(f"<think>Hm.</think>Here:\n```json\n{json.dumps({'edits': [ADD]})}\n```")
    assert [edit.text for edit in read_edits(reply, BOOK, SHOWN)] == ["Give dates in full."]


def test_a_lesson_becomes_one_line():
    assert read({**ADD, "text": "  Give dates\n in\u2028full. "})[0].text == "Give dates in full."


def test_an_addition_touches_no_lesson_whatever_it_says():
    assert read({**ADD, "lesson": "L1"})[0].lesson is None


def test_a_removal_has_no_words_whatever_it_says():
    assert read({**REMOVE, "text": "Gone."})[0].text == ""


def test_fields_that_nobody_asked_for_are_passed_over():
    assert read({**ADD, "confidence": 0.9}) == read(ADD)


def test_only_action_and_text_must_be_there():
    assert read({"action": "add", "text": "Give dates in full."}) == [Edit("add", "Give dates in full.")]


BAD = {
    "evidence that was not shown": ({**ADD, "evidence": ["g1", "g3"]}, "unknown_ids"),
    "a change of no lesson": ({**CHANGE, "lesson": None}, "unknown_ids"),
    "a change of an unknown lesson": ({**CHANGE, "lesson": "L3"}, "unknown_ids"),
    "a removal of an unknown lesson": ({**REMOVE, "lesson": "L3"}, "unknown_ids"),
    "an addition without words": ({**ADD, "text": ""}, "empty"),
    "a change to blanks": ({**CHANGE, "text": " \n "}, "empty"),
    "an unknown action": ({**ADD, "action": "rewrite"}, "wrong_type"),
    "no action": ({"text": "Give dates in full."}, "wrong_type"),
    "a number for words": ({**ADD, "text": 5}, "wrong_type"),
    "null for words": ({**ADD, "text": None}, "wrong_type"),
    "a text for the evidence": ({**ADD, "evidence": "g1"}, "wrong_type"),
    "a number among the evidence": ({**ADD, "evidence": [1]}, "wrong_type"),
    "a number for a lesson": ({**CHANGE, "lesson": 2}, "wrong_type"),
    "a text for an edit": ("Give dates in full.", "wrong_type"),
}


@pytest.mark.parametrize(("edit", "kind"), BAD.values(), ids=BAD)
def test_an_edit_that_cannot_be_used_makes_the_reply_unusable(edit, kind):
    assert kind_of(json.dumps({"edits": [ADD, edit]})) == kind


def test_more_than_three_edits_are_refused():
    assert kind_of(json.dumps({"edits": [ADD] * 4})) == "wrong_type"


@pytest.mark.parametrize("edits", [ADD, "none", None, 3], ids=["an object", "a text", "null", "a number"])
def test_edits_that_are_no_list_are_refused(edits):
    assert kind_of(json.dumps({"edits": edits})) == "wrong_type"


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("", "empty"),
        ("I would change nothing.", "invalid_json"),
        (json.dumps({"changes": [ADD]}), "invalid_json"),
        (json.dumps({"edits": [ADD]})[:-3], "invalid_json"),
        (json.dumps({"edits": []}) + json.dumps({"edits": [ADD]}), "ambiguous"),
    ],
    ids=["empty", "prose", "another key", "cut off", "two answers"],
)
def test_a_reply_without_one_clear_list_is_refused(content, kind):
    assert kind_of(content) == kind


def test_a_reply_that_was_cut_is_refused_however_complete_it_looks():
    with pytest.raises(JudgeReplyError) as caught:
        read_edits(ChatReply(json.dumps({"edits": [ADD]}), finish_reason="length"), BOOK, SHOWN)
    assert caught.value.kind == "truncated"


def schema(playbook=BOOK):
    return edits_format(playbook, SHOWN)["json_schema"]["schema"]


def is_in_form(*edits, playbook=BOOK):
    return jsonschema.Draft202012Validator(schema(playbook)).is_valid({"edits": list(edits)})


@pytest.mark.parametrize("playbook", [BOOK, Playbook()], ids=["lessons", "none"])
def test_the_form_is_a_schema(playbook):
    jsonschema.Draft202012Validator.check_schema(schema(playbook))


@pytest.mark.parametrize(
    "edits",
    [[], [ADD], [CHANGE], [REMOVE], [ADD, CHANGE, REMOVE]],
    ids=["none", "add", "change", "remove", "three"],
)
def test_what_is_read_keeps_to_the_form(edits):
    assert is_in_form(*edits) and len(read(*edits)) == len(edits)


@pytest.mark.parametrize(
    "edit",
    [
        edit
        for name, (edit, _) in BAD.items()
        if "blanks" not in name and "without" not in name and "of no" not in name
    ],
    ids=[name for name in BAD if "blanks" not in name and "without" not in name and "of no" not in name],
)
def test_what_cannot_be_read_breaks_the_form(edit):
    assert not is_in_form(edit)


def test_four_edits_break_the_form():
    assert not is_in_form(ADD, ADD, ADD, ADD)


@pytest.mark.parametrize("edit", [CHANGE, REMOVE], ids=["change", "remove"])
def test_where_there_are_no_lessons_the_form_only_lets_one_add(edit):
    assert not is_in_form(edit, playbook=Playbook())


def test_an_added_lesson_comes_last_with_a_new_id():
    ids = LessonIds(2)
    edited, name = read(ADD)[0].applied_to(BOOK, ids)
    assert (name, edited.lessons) == ("L3", (*BOOK.lessons, Lesson("L3", "Give dates in full.")))


def test_a_changed_lesson_keeps_its_id_and_place_and_begins_to_count_anew():
    edited, name = Edit("change", "Cite the page.", "L1").applied_to(BOOK, LessonIds(2))
    assert (name, edited.lessons) == ("L1", (Lesson("L1", "Cite the page."), BOOK.lessons[1]))


def test_a_removed_lesson_is_gone():
    edited, name = read(REMOVE)[0].applied_to(BOOK, LessonIds(2))
    assert (name, edited) == ("L1", Playbook((BOOK.lessons[1],)))


def test_only_additions_use_up_an_id():
    ids = LessonIds(2)
    for edit in read(CHANGE, REMOVE):
        edit.applied_to(BOOK, ids)
    assert ids.given == 2


def test_the_given_playbook_is_not_changed():
    before = BOOK.to_dict()
    read(CHANGE)[0].applied_to(BOOK, LessonIds(2))
    assert BOOK.to_dict() == before


@pytest.mark.parametrize(("lesson", "fits"), [(None, True), ("L2", True), ("L3", False)])
def test_an_edit_fits_where_its_lesson_is(lesson, fits):
    assert Edit("change" if lesson else "add", "Words.", lesson).fits(BOOK) is fits


@pytest.mark.parametrize("edit", [ADD, CHANGE, REMOVE], ids=["add", "change", "remove"])
def test_an_edit_survives_a_file(edit):
    (before,) = read(edit)
    assert Edit.from_dict(json.loads(json.dumps(before.to_dict()))) == before
