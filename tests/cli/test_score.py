"""`groundrule score`."""

from __future__ import annotations

import json

import pytest

from fakes import group_of
from groundrule.data.records import read_groups, write_groups

GOOD, BAD = "Within thirty days.", "Ask someone else."


@pytest.fixture(autouse=True)
def judges(judge_named):
    judge_named("test", "named_judges:keyword")
    judge_named("broken", "named_judges:down")
    judge_named("long", "named_judges:longest")


@pytest.fixture
def two_groups(tmp_path):
    path = tmp_path / "answers.jsonl"
    write_groups(
        path, [group_of(GOOD, BAD, scenario_id="refunds"), group_of(BAD, GOOD, scenario_id="returns")]
    )
    return path


def test_every_group_gets_its_scores_in_group_order(groundrule, two_groups):
    assert groundrule("score", two_groups, "--judge", "test/judge").code == 0
    scored = read_groups(two_groups.with_suffix(".scored.jsonl"))
    assert [g.rewards for g in scored] == [[0.9, 0.1], [0.1, 0.9]]


def test_the_scores_are_printed_by_group(groundrule, two_groups):
    said = groundrule("score", two_groups, "--judge", "test/judge").out
    assert said.splitlines()[:2] == ["refunds: 0.900 0.100", "returns: 0.100 0.900"]


def test_the_last_line_says_how_many_were_scored_and_where_they_are(groundrule, two_groups):
    said = groundrule("score", two_groups, "--judge", "test/judge").out
    assert said.splitlines()[-1].startswith(
        f"2 of 2 groups scored -> {two_groups.with_suffix('.scored.jsonl')}"
    )


def test_the_given_file_is_not_changed(groundrule, two_groups):
    before = two_groups.read_bytes()
    groundrule("score", two_groups, "--judge", "test/judge")
    assert two_groups.read_bytes() == before


def test_out_says_where_the_scored_groups_go(groundrule, two_groups, tmp_path):
    groundrule("score", two_groups, "--judge", "test/judge", "--out", tmp_path / "deep" / "here.jsonl")
    assert len(read_groups(tmp_path / "deep" / "here.jsonl")) == 2


def test_a_judge_that_is_a_scorer_works_too(groundrule, two_groups):
    groundrule("score", two_groups, "--judge", "long/any")
    assert read_groups(two_groups.with_suffix(".scored.jsonl"))[0].rewards == [0.19, 0.17]


def test_groups_without_a_name_are_numbered(groundrule, tmp_path):
    write_groups(tmp_path / "a.jsonl", [group_of(GOOD, BAD)])
    assert groundrule("score", tmp_path / "a.jsonl", "--judge", "test/judge").out.startswith(
        "#1: 0.900 0.100\n"
    )


def test_when_every_group_fails_the_exit_code_is_not_zero(groundrule, two_groups):
    assert groundrule("score", two_groups, "--judge", "broken/judge").code == 1


def test_when_every_group_fails_stderr_names_the_first_with_the_reason(groundrule, two_groups):
    said = groundrule("score", two_groups, "--judge", "broken/judge").err
    assert (
        "error: group refunds has no scores: JudgeError: no judge gave scores: judge: the judge is down"
        in said
    )


def test_what_could_not_be_scored_is_kept_with_the_reason(groundrule, two_groups):
    groundrule("score", two_groups, "--judge", "broken/judge")
    first = read_groups(two_groups.with_suffix(".scored.jsonl"))[0].trajectories[0]
    assert (first.reward, first.unscored) == (
        0.0,
        "JudgeError: no judge gave scores: judge: the judge is down",
    )


def test_a_group_that_cannot_be_compared_is_named_while_the_others_are_scored(groundrule, tmp_path):
    write_groups(tmp_path / "a.jsonl", [group_of(GOOD, BAD), group_of(GOOD, GOOD, scenario_id="same")])
    done = groundrule("score", tmp_path / "a.jsonl", "--judge", "test/judge")
    assert (done.code, "1 of 2 groups scored" in done.out, "error: group same has no" in done.err) == (
        1,
        True,
        True,
    )


def test_a_line_that_is_no_json_is_named_with_file_line_and_column(groundrule, two_groups):
    with two_groups.open("a") as stream:
        stream.write('{"trajectories": [}\n')
    done = groundrule("score", two_groups, "--judge", "test/judge")
    assert (done.code, f"error: {two_groups}, line 3, column 19: " in done.err) == (2, True)


def test_a_field_of_the_wrong_kind_is_named_with_file_line_and_field(groundrule, tmp_path):
    (tmp_path / "a.jsonl").write_text(json.dumps({"messages": [], "reward": "high"}) + "\n")
    done = groundrule("score", tmp_path / "a.jsonl", "--judge", "test/judge")
    assert (done.code, f"{tmp_path / 'a.jsonl'}, line 1, column reward: 'high'" in done.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.jsonl"], "error: missing.jsonl: cannot be read: No such file or directory"),
        (["."], "error: .: cannot be read: Is a directory"),
        (["empty.jsonl"], "error: empty.jsonl: holds no groups"),
        (["answers.jsonl", "--judge", "opnai/o3"], "did you mean openai/o3?"),
        (["answers.jsonl", "--judge", "o3"], "write the provider before it, as in 'openai/o3'"),
        (["answers.jsonl", "--rubric", "no.txt"], "error: the rubric no.txt cannot be read"),
        (["answers.jsonl", "--at-once", "0"], "0 is not in the range x>=1"),
        ([], "Missing argument 'FILE'"),
    ],
)
def test_wrong_input_ends_with_2_and_says_what_is_wrong(groundrule, two_groups, tmp_path, arguments, said):
    (tmp_path / "empty.jsonl").touch()
    done = groundrule("score", *arguments)
    assert (done.code, said in done.err) == (2, True), done.err


def test_a_folder_that_cannot_be_written_is_named(groundrule, two_groups):
    done = groundrule("score", two_groups, "--judge", "test/judge", "--out", two_groups / "x.jsonl")
    assert (done.code, str(two_groups) in done.err, "Traceback" in done.err) == (1, True, False)
