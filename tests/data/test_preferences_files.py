"""Preferences as JSON lines: our record, and the layouts of others."""

from __future__ import annotations

import json

import pytest

from groundrule.data.preference_records import (
    append_ranking,
    numbered_rankings,
    read_pairs,
    read_rankings,
    write_pairs,
    write_rankings,
)
from groundrule.errors import DataError


def user(text):
    return {"role": "user", "content": text}


def agent(text):
    return {"role": "assistant", "content": text}


def lines(path, *records):
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


FULL = {
    "prompt": [{"role": "system", "content": "Be brief."}, user("Refunds?")],
    "answers": [
        {"id": "a", "text": "Within 30 days.", "score": 3.0},
        {"id": "b", "messages": [agent("I look."), user("Well?"), agent("No.")]},
        {"id": "c", "text": "Äh …"},
    ],
    "order": [["a"], ["b", "c"]],
    "margins": [2.0],
    "annotator": "ann",
    "source": "human",
    "certainty": 0.75,
    "scenario_id": "shop-1",
    "tools": [{"type": "function", "function": {"name": "find"}}],
    "metadata": {"seconds": None, "shown": ["c", "a", "b"]},
}


def test_a_ranking_is_written_as_it_was_read(tmp_path):
    rankings = read_rankings(lines(tmp_path / "in.jsonl", FULL))
    write_rankings(tmp_path / "out.jsonl", rankings)
    assert json.loads((tmp_path / "out.jsonl").read_text()) == FULL
    assert read_rankings(tmp_path / "out.jsonl") == rankings


def test_what_has_its_default_is_not_written(tmp_path):
    file = lines(tmp_path / "p.jsonl", {"prompt": "Refunds?", "chosen": "Yes.", "rejected": "No."})
    write_rankings(file, read_rankings(file))
    assert json.loads(file.read_text()).keys() == {"prompt", "answers", "order"}


def test_rankings_can_be_added_one_by_one(tmp_path):
    [ranking] = read_rankings(lines(tmp_path / "in.jsonl", FULL))
    for _ in range(2):
        append_ranking(tmp_path / "log.jsonl", ranking)
    assert read_rankings(tmp_path / "log.jsonl") == [ranking, ranking]


LAYOUTS = {
    "conversational": {
        "prompt": [user("Refunds?")],
        "chosen": [agent("Yes.")],
        "rejected": [agent("No.")],
    },
    "plain texts": {"prompt": "Refunds?", "chosen": "Yes.", "rejected": "No."},
    "one message": {"prompt": "Refunds?", "chosen": agent("Yes."), "rejected": agent("No.")},
    "whole conversations": {
        "chosen": [user("Refunds?"), agent("Yes.")],
        "rejected": [user("Refunds?"), agent("No.")],
    },
    "a prompt that is repeated": {
        "prompt": "Refunds?",
        "chosen": [user("Refunds?"), agent("Yes.")],
        "rejected": [user("Refunds?"), agent("No.")],
    },
    "nulls for what is absent": {
        "prompt": None,
        "margin": None,
        "chosen": [{**user("Refunds?"), "name": None}, agent("Yes.")],
        "rejected": [user("Refunds?"), agent("No.")],
    },
}


@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS.keys())
def test_common_layouts_of_pairs_mean_the_same(tmp_path, layout):
    [pair] = read_pairs(lines(tmp_path / "p.jsonl", layout))
    assert pair.prompt == [user("Refunds?")]
    assert (pair.chosen.messages, pair.rejected.messages) == ([agent("Yes.")], [agent("No.")])
    assert pair.margin is None


def test_the_shared_beginning_is_the_prompt_with_all_its_turns(tmp_path):
    shared = [user("Refunds?"), agent("Which order?"), user("Seven.")]
    record = {
        "chosen": [*shared, agent("Yes.")],
        "rejected": [*shared, agent("No."), user("Why?"), agent("So.")],
    }
    [pair] = read_pairs(lines(tmp_path / "p.jsonl", record))
    assert pair.prompt == shared
    assert pair.rejected.messages == [agent("No."), user("Why?"), agent("So.")]


def test_columns_without_a_meaning_here_are_kept_as_metadata(tmp_path):
    record = {
        **LAYOUTS["plain texts"],
        "annotator": 7,
        "margin": 1,
        "score_chosen": 8.5,
        "metadata": {"set": "x"},
    }
    [pair] = read_pairs(lines(tmp_path / "p.jsonl", record))
    assert pair.metadata == {"set": "x", "score_chosen": 8.5}
    assert (pair.annotator, pair.margin) == ("7", 1.0)


def test_pairs_are_written_in_the_conversational_layout_and_read_back(tmp_path):
    pairs = read_pairs(lines(tmp_path / "in.jsonl", FULL))
    write_pairs(tmp_path / "out.jsonl", pairs)
    first = json.loads((tmp_path / "out.jsonl").read_text().splitlines()[0])
    assert first["prompt"] == FULL["prompt"]
    assert (first["chosen"], first["chosen_id"]) == ([agent("Within 30 days.")], "a")
    assert (first["margin"], first["certainty"]) == (2.0, 0.75)
    again = read_pairs(tmp_path / "out.jsonl")
    assert [(p.chosen.id, p.rejected.id, p.margin, p.metadata) for p in again] == [
        (p.chosen.id, p.rejected.id, p.margin, p.metadata) for p in pairs
    ]


def test_contradictions_are_reported_and_stay(tmp_path, caplog):
    record = {"prompt": "Refunds?", "chosen": "Yes.", "rejected": "No.", "annotator": "ann"}
    turned = {**record, "chosen": "No.", "rejected": "Yes."}
    assert len(read_pairs(lines(tmp_path / "p.jsonl", record, turned))) == 2
    assert "1 contradictions, such as annotator 'ann' on 'Refunds?'" in caplog.text


Q = {"prompt": "Q?"}
TWO = {**Q, "answers": [{"id": "a", "text": "A"}, {"id": "b", "text": "B"}], "order": ["a", "b"]}
WRONG = [
    ({**TWO, "order": ["a", "z"]}, "order", "'z' is the id of no answer"),
    ({**TWO, "order": ["a", "a"]}, "order", "'a' is ranked twice"),
    ({**TWO, "order": "ab"}, "order", "write the ids best first"),
    ({**TWO, "answers": [{"text": "A"}, {"text": ""}]}, "answers.1", "the answer is empty"),
    ({**TWO, "answers": [{"text": "A"}, {"text": "A"}]}, "answers.1", "says the same as answer"),
    ({**TWO, "answers": [{"text": "A"}]}, "answers", "at least two"),
    ({**TWO, "answers": [{"text": "A"}, {"txt": "B"}]}, "answers.1", "a 'text' or 'messages'"),
    ({**TWO, "margins": ["much"]}, "margins.0", "write a list of numbers from 0 up"),
    ({**TWO, "ordr": ["a"]}, "ordr", "did you mean 'order'?"),
    ({"answers": TWO["answers"], "order": ["a", "b"]}, "prompt", "is missing"),
    ({**Q, "chosen": "A", "rejected": "A"}, "rejected", "the chosen answer is the rejected one"),
    ({**Q, "chosen": "A", "rejected": ""}, "rejected", "the answer is empty"),
    ({**Q, "chosen": [], "rejected": "B"}, "chosen", "the answer is empty"),
    ({**Q, "chosen": "A", "rejected": "B", "margin": -1}, "margin", "write a number from 0 up"),
    ({**Q, "chosen": "A", "rejected": "B", "certainty": 0.2}, "certainty", "turn the order round"),
    ({**Q, "chosen": "A", "rejected": "B", "k": 1, "metadata": {"k": 2}}, "k", "also a key of 'metadata'"),
    ({"chosen": "A", "rejected": "B"}, "chosen", "there is no 'prompt'"),
    ({"chosen": [agent("A")], "rejected": [agent("B")]}, "chosen", "begin with the answer"),
    (
        {"chosen": [user("Q?"), agent("A")], "rejected": [user("R?"), agent("B")]},
        "chosen",
        "the prompt of 'chosen' is not that of 'rejected': they part at message 1",
    ),
    (
        {"chosen": [user("Q?"), agent("A")], "rejected": [user("Q?"), agent("A"), user("B")]},
        "chosen",
        "ends after message 2, where the other one goes on",
    ),
    (
        {**Q, "chosen": [user("Q?"), agent("A")], "rejected": [user("R?"), agent("B")]},
        "rejected",
        "begins with another conversation than 'prompt'",
    ),
    ({**Q, "chosen": [{"from": "gpt", "value": "A"}], "rejected": "B"}, "chosen", "has no role"),
    ({**Q, "chosen": "A"}, None, "a pair needs 'chosen' and 'rejected'"),
    ({"trajectories": []}, None, "`groundrule prefs from-run`"),
    (["A", "B"], None, "each line must be an object"),
]


@pytest.mark.parametrize(("record", "column", "said"), WRONG, ids=[said for _, _, said in WRONG])
def test_what_is_wrong_is_named_with_line_and_field(tmp_path, record, column, said):
    file = lines(tmp_path / "p.jsonl", TWO, record)
    with pytest.raises(DataError) as refused:
        read_rankings(file)
    assert (refused.value.path, refused.value.line, refused.value.column) == (str(file), 2, column)
    assert said in refused.value.message


def test_numbers_that_are_none_are_refused(tmp_path):
    file = tmp_path / "p.jsonl"
    for number, said in (("NaN", "NaN is not a JSON number"), ("1e999", "should be a finite number")):
        file.write_text(f'{{"prompt": "Q?", "chosen": "A", "rejected": "B", "margin": {number}}}\n')
        with pytest.raises(DataError, match=said):
            read_rankings(file)


def test_a_file_without_preferences_is_refused(tmp_path):
    with pytest.raises(DataError, match="holds no preferences"):
        read_rankings(lines(tmp_path / "p.jsonl"))


def test_line_numbers_count_blank_lines(tmp_path):
    file = tmp_path / "p.jsonl"
    file.write_text("\n" + json.dumps(TWO) + "\n\n" + json.dumps(TWO) + "\n")
    assert [line for line, _ in numbered_rankings(file)] == [2, 4]
