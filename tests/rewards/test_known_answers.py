"""The built-in suite of known answers, and labels in general."""

from __future__ import annotations

import json
import re
from collections import Counter

import pytest

from fakes import chat, group_of
from groundrule.data.messages import text_of
from groundrule.data.records import group_record
from groundrule.errors import DataError
from groundrule.rewards.attempt import attempts_of
from groundrule.rewards.suites import AREAS, known_from, known_suite, read_labelled

SUITE = known_suite()
IDS = [group.name for group in SUITE]


def answers(group) -> list[str]:
    return [text_of(member.messages()[-1].get("content")) for member in group.group]


def in_area(area: str):
    return [group for group in SUITE if group.area == area]


def test_the_areas_are_complete():
    assert {group.area for group in SUITE} == set(AREAS)


def test_the_suite_has_so_many_groups_by_area():
    assert Counter(group.area for group in SUITE) == {
        "spec": 8,
        "injection": 6,
        "grounding": 4,
        "style": 4,
        "refusals": 4,
        "tools": 4,
        "length": 3,
        "ties": 3,
        "languages": 3,
        "empty": 2,
        "twins": 2,
    }


def test_every_group_has_a_name_of_its_own():
    assert len(set(IDS)) == len(IDS)


@pytest.mark.parametrize("group", SUITE, ids=IDS)
def test_a_group_has_three_to_five_members(group):
    assert 3 <= len(group.group) <= 5


@pytest.mark.parametrize("group", SUITE, ids=IDS)
def test_no_member_stands_twice(group):
    assert len({attempt.key for attempt in attempts_of(group.group)}) == len(group.group)


@pytest.mark.parametrize("group", SUITE, ids=IDS)
def test_all_members_face_the_same_system_prompt_and_question(group):
    assert len({json.dumps(member.messages()[:2]) for member in group.group}) == 1


@pytest.mark.parametrize("group", [g for g in SUITE if g.area != "ties"], ids=lambda g: g.name)
def test_outside_of_ties_there_are_two_tiers_at_least(group):
    assert len(set(group.known.places)) >= 2


@pytest.mark.parametrize("group", in_area("ties"), ids=lambda g: g.name)
def test_ties_have_one_tier(group):
    assert (len(set(group.known.places)), len(group.known.tied)) == (1, 3)


def test_the_best_answer_does_not_always_stand_first():
    first = sum(group.known.places[0] == 0.0 for group in SUITE)
    assert 0.2 < first / len(SUITE) < 0.5


def test_the_texts_are_short():
    assert max(len(text) for group in SUITE for text in answers(group)) < 500


def test_addresses_are_example_addresses():
    text = json.dumps([group_record(group.group) for group in SUITE])
    assert set(re.findall(r"@([\w.-]+\w)", text)) == {"example.com"}


def test_groups_under_opposite_prompts_hold_the_same_answers_in_reverse_order():
    series = Counter(group.series for group in in_area("spec"))
    assert set(series.values()) == {2}
    for name in series:
        one, other = [group for group in SUITE if group.series == name]
        assert answers(one) == answers(other)
        turned = sorted((b, a) for a, b in other.known.ordered)
        assert sorted(one.known.ordered) == turned


@pytest.mark.parametrize("group", in_area("injection"), ids=lambda g: g.name)
def test_an_injected_answer_is_its_clean_form_with_something_added(group):
    for injected, clean in group.known.injected:
        said = [json.dumps(group.group.trajectories[i].messages()) for i in (injected, clean)]
        assert len(said[0]) > len(said[1]) + 40
        assert answers(group)[injected].startswith(answers(group)[clean])


def test_every_injection_group_has_an_injected_answer():
    assert [group.name for group in in_area("injection") if not group.known.injected] == []


def test_padded_answers_are_three_times_as_long():
    pairs = [(group, i, j) for group in SUITE for i, j in group.known.padded]
    words = [[len(answers(group)[i].split()) for i in pair] for group, *pair in pairs]
    assert [padded >= 3 * plain for padded, plain in words] == [True, True]


def test_twins_differ_in_white_space_only():
    pairs = [[answers(group)[i] for i in pair] for group in SUITE for pair in group.known.twins]
    assert len(pairs) == 2
    assert all(one != other and one.split() == other.split() for one, other in pairs)


def test_tool_groups_hold_real_calls():
    with_calls = [
        g for g in in_area("tools") if any(m.get("tool_calls") for t in g.group for m in t.messages())
    ]
    assert len(with_calls) == 4


def test_two_languages_besides_english_are_there():
    assert {g.group.metadata.get("language") for g in in_area("languages")} == {"de", "es"}


def test_tiers_become_ordered_and_tied_pairs():
    known = known_from({"rank": [[2], [0, 3], [1]]}, 4)
    assert known.places == (-1.0, -2.0, 0.0, -1.0)
    assert sorted(known.ordered) == [(0, 1), (2, 0), (2, 1), (2, 3), (3, 1)]
    assert known.tied == ((0, 3),)


def test_equal_or_unknown_scores_order_nothing_and_are_no_ties():
    known = known_from({"scores": [1, None, 0.5, True]}, 4)
    assert (sorted(known.ordered), known.tied) == ([(0, 2), (3, 2)], ())


def test_the_best_member_is_above_all_others_and_they_are_of_unknown_order():
    known = known_from({"best": 1}, 3)
    assert (sorted(known.ordered), known.tied) == ([(1, 0), (1, 2)], ())


def test_of_pairs_that_matter_nothing_else_counts():
    known = known_from({"rank": [[0], [1, 2]], "pairs_that_matter": [[0, 2]]}, 3)
    assert (known.ordered, known.tied) == (((0, 2),), ())


WRONG = [
    ({"ranks": [[0]]}, "labels", "holds the keys 'ranks'; write one of 'rank': [[2], [0, 1]]"),
    ({"rank": [[0], [1]], "best": 0}, "labels", "holds 'rank' and 'best'; write one of"),
    ({"rank": [0, 1]}, "labels.rank", "[0, 1] is not a list of tiers"),
    ({"rank": [[0], [2]]}, "labels.rank", "2 is no member; the 2 members are numbered from 0 to 1"),
    ({"rank": [[0], [0, 1]]}, "labels.rank", "member 0 stands in it twice; put it into one tier"),
    ({"rank": [[0]]}, "labels.rank", "member 1 is in no tier; every one of the 2 members needs one"),
    ({"scores": [1.0]}, "labels.scores", "1 numbers for 2 members; write one number a member"),
    (
        {"scores": [1.0, "high"]},
        "labels.scores",
        "member 1 has 'high'; write a number, or null where unknown",
    ),
    ({"best": True}, "labels.best", "True is no member"),
    ({"best": -1}, "labels.best", "-1 is no member"),
    (
        {"best": 0, "padded": [0, 1]},
        "labels.padded",
        "[0, 1] is not a list of pairs; write 'padded': [[0, 1]]",
    ),
    (
        {"best": 0, "pairs_that_matter": [[1, 0]]},
        "labels.pairs_that_matter",
        "member 1 is not above member 0 in this group's own order",
    ),
]


@pytest.mark.parametrize(("labels", "where", "said"), WRONG, ids=[str(labels) for labels, *_ in WRONG])
def test_a_wrong_label_is_named_with_file_line_and_remedy(tmp_path, labels, where, said):
    path = tmp_path / "rated.jsonl"
    right = group_record(group_of("Yes.", "No.", labels={"best": 0}))
    wrong = group_record(group_of("Yes.", "No.", labels=labels))
    path.write_text("\n".join(json.dumps(record) for record in (right, wrong)) + "\n")
    with pytest.raises(DataError) as caught:
        read_labelled(path)
    assert str(caught.value).startswith(f"{path}, line 2, column {where}: {said}")


def test_single_trajectories_move_no_line_numbers(tmp_path):
    single = {"messages": chat("Yes."), "scenario_id": "a"}
    wrong = group_record(group_of("Yes.", "No.", labels={"best": 7}))
    path = tmp_path / "rated.jsonl"
    path.write_text("\n".join(json.dumps(record) for record in (single, single, wrong)) + "\n")
    with pytest.raises(DataError, match="line 3"):
        read_labelled(path)


def test_groups_without_labels_are_left_out_and_counted(tmp_path):
    path = tmp_path / "rated.jsonl"
    groups = [group_of("Yes.", "No.", labels={"best": 0}), group_of("Yes.", "No.")]
    path.write_text("\n".join(json.dumps(group_record(group)) for group in groups) + "\n")
    read = read_labelled(path)
    assert (len(read.groups), read.unlabelled, read.groups[0].name) == (1, 1, "line 1")


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ([], "holds no groups"),
        ([group_of("Yes.", "No.")], "none of its 1 groups has labels; add what is known"),
        (
            [group_of("Yes.", "No.", labels={"scores": [1, 1]})],
            "its labels call no member better than another, so there is no order to compare with",
        ),
    ],
)
def test_a_file_without_any_known_order_is_refused(tmp_path, groups, said):
    path = tmp_path / "rated.jsonl"
    path.write_text("".join(json.dumps(group_record(group)) + "\n" for group in groups))
    with pytest.raises(DataError) as caught:
        read_labelled(path)
    assert str(caught.value).startswith(f"{path}: {said}")
