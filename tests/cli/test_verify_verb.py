"""`groundrule verify`."""

from __future__ import annotations

import json

import pytest

from fakes import group_of
from groundrule.data.records import read_groups, write_groups


def lines(path, *records):
    path.write_text("".join(json.dumps(r) + "\n" for r in records))
    return path


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_plain_answers_get_their_scores(groundrule, tmp_path):
    file = lines(
        tmp_path / "answers.jsonl",
        {"id": 1, "answer": "So it is \\boxed{42}.", "reference": "42"},
        {"id": 2, "answer": "\\boxed{41}", "reference": "42"},
    )
    result = groundrule("verify", "--kind", "math", file)
    assert result.code == 0
    assert result.out.splitlines()[-1].startswith("2 of 2 answers have a score, mean 0.500 -> ")
    written = read(tmp_path / "answers.verified.jsonl")
    assert [(r["id"], r["score"]) for r in written] == [(1, 1.0), (2, 0.0)]


def test_an_answer_without_a_score_is_named_and_never_0(groundrule, tmp_path):
    file = lines(tmp_path / "a.jsonl", {"answer": "x", "reference": "x"}, {"answer": "y"})
    result = groundrule("verify", "--kind", "exact", file)
    assert result.code == 1
    assert "line 2" in result.err
    assert [r["score"] for r in read(tmp_path / "a.verified.jsonl")] == [1.0, None]


def test_groups_stay_groups(groundrule, tmp_path):
    group = group_of("within 21 days", "never")
    group.metadata["reference"] = "Within 21 days."
    write_groups(tmp_path / "g.jsonl", [group])
    assert groundrule("verify", "--kind", "exact", tmp_path / "g.jsonl").code == 0
    assert read_groups(tmp_path / "g.verified.jsonl")[0].rewards == [1.0, 0.0]


def test_any_function_can_verify(groundrule, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text("def brief(answer):\n    return float(len(answer) < 5)\n")
    file = lines(tmp_path / "a.jsonl", {"answer": "yes"}, {"answer": "yes, certainly"})
    groundrule("verify", "--kind", f"{mine}:brief", file)
    assert [r["score"] for r in read(tmp_path / "a.verified.jsonl")] == [1.0, 0.0]


@pytest.mark.parametrize(
    ("record", "said"), [({"question": "?"}, "neither an 'answer'"), ({"answer": 7}, "neither an 'answer'")]
)
def test_a_line_without_an_answer_is_wrong_input(groundrule, tmp_path, record, said):
    result = groundrule("verify", "--kind", "exact", lines(tmp_path / "a.jsonl", record))
    assert result.code == 2
    assert said in result.err
    assert "line 1" in result.err
