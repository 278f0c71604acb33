"""`groundrule verify`."""

from __future__ import annotations

import json

import pytest

from fakes import group_of
from groundrule.data.records import read_groups, write_groups
from groundrule.llm import ScriptedClient


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


JUDGED = [
    {"answer": f"Answer {n}: 30 days.", "question": "How long?", "reference": "thirty days"} for n in range(4)
]
"""No check decides them, so a judge compares each with its reference."""

asked: list[str] = []


def reader(name, params):
    """A judge that finds every answer right, and notes what it was asked."""

    def same(request):
        text = request.messages[1]["content"].split(" ANSWER>>>\n")[1].split("\n<<<")[0]
        asked.append(text)
        return {"quote": text, "verdict": "same"}

    return ScriptedClient(same)


@pytest.fixture
def judged(judge_named, tmp_path):
    judge_named("reader", f"{__name__}:reader")
    asked.clear()
    return lines(tmp_path / "judged.jsonl", *JUDGED)


def universal(file, *more):
    return (
        "verify",
        "--kind",
        "universal",
        "--judge",
        "reader/one",
        "--layers",
        "reference",
        file,
        "--at-once",
        1,
        *more,
    )


def test_a_budget_that_is_used_up_keeps_what_was_paid_for(groundrule, judged, tmp_path):
    whole = groundrule(*universal(judged))
    calls = len(asked)
    asked.clear()
    first = groundrule(*universal(judged, "--budget-calls", calls // 2))
    begun = list(asked)
    second = groundrule(*universal(judged, "--budget-calls", 2 * calls))

    assert whole.code == 0
    assert first.code == 1
    assert "the budget of the verification is used up" in first.err
    assert len(begun) == calls // 2
    assert (second.code, len(asked)) == (0, calls)
    assert second.out.splitlines()[-1].startswith("4 of 4 answers have a score, mean 1.000")
    assert not (tmp_path / "judged.verify").exists()


def test_a_verification_that_is_stopped_by_hand_goes_on_behind_what_it_has(groundrule, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from pathlib import Path\n"
        "def once(answer):\n"
        "    seen = Path('seen.txt')\n"
        "    with seen.open('a') as file:\n"
        "        file.write(answer)\n"
        "    if seen.read_text() == 'ab':\n"
        "        raise KeyboardInterrupt\n"
        "    return 1.0\n"
    )
    file = lines(tmp_path / "a.jsonl", {"answer": "a"}, {"answer": "b"}, {"answer": "c"})

    stopped = groundrule("verify", "--kind", f"{mine}:once", file, "--at-once", 1)
    done = groundrule("verify", "--kind", f"{mine}:once", file, "--at-once", 1)

    assert (stopped.code, done.code) == (130, 0)
    assert (tmp_path / "seen.txt").read_text() == "abbc"
