"""`groundrule judge-eval`."""

from __future__ import annotations

import json

import pytest

from fakes import group_of
from groundrule.data.records import read_groups, write_groups
from made_up_runs import group_with, healthy_run, made_up_run

GOOD, BAD = "Within thirty days.", "Ask someone else."


@pytest.fixture(autouse=True)
def judges(judge_named):
    judge_named("test", "suite_judges:by_name")
    judge_named("words", "named_judges:keyword")
    judge_named("long", "named_judges:longest")


@pytest.fixture
def rated(tmp_path):
    """Twelve rated groups of two answers each."""
    path = tmp_path / "rated.jsonl"
    groups = [
        group_of(GOOD, BAD, scenario_id=f"q{i}", labels={"scores": [5, 1]}, metadata={"area": "facts"})
        for i in range(12)
    ]
    write_groups(path, groups)
    return path


def test_the_built_in_suite_is_measured_without_an_argument(groundrule):
    done = groundrule("judge-eval", "--judge", "test/perfect")
    assert (done.code, done.out.splitlines()[0]) == (
        0,
        "test/perfect on the known-answer suite: 43 groups, 142 answers",
    )


def test_the_tables_are_plain_lines_where_there_is_no_terminal(groundrule):
    lines = groundrule("judge-eval", "--judge", "test/perfect").out.splitlines()
    cells = {line.split("  ")[0]: [c.strip() for c in line.split("  ") if c.strip()] for line in lines}
    assert cells["pairs in the right order"] == [
        "pairs in the right order",
        "100%",
        "100% .. 100%",
        "147 pairs",
        "at least 80%",
    ]
    assert cells["tools"] == ["tools", "100%", "100% .. 100%", "12 pairs, 4 groups", "yes"]
    assert "verdict: go" in lines


def test_a_no_go_ends_with_1_and_says_why(groundrule):
    done = groundrule("judge-eval", "--judge", "test/random")
    assert (done.code, "verdict: no-go" in done.out, "no better than chance" in done.out) == (1, True, True)


def test_limits_end_with_0_and_name_where_not_to_use_it(groundrule):
    done = groundrule("judge-eval", "--judge", "test/deaf")
    assert (done.code, "verdict: go with limits" in done.out, "  not for: spec" in done.out) == (
        0,
        True,
        True,
    )


def test_a_judge_that_never_answers_ends_with_1_and_the_reasons(groundrule):
    done = groundrule("judge-eval", "--judge", "test/down", "--area", "tools")
    assert done.code == 1
    assert "no score: tools-false-success: " in done.out
    assert "12 of 12 answers got no score (100%)" in done.out


def test_json_is_one_object_and_nothing_else(groundrule):
    done = groundrule("judge-eval", "--judge", "test/perfect", "--json")
    record = json.loads(done.out)
    assert (record["judge"], record["source"], record["verdict"]["decision"]) == (
        "test/perfect",
        "the known-answer suite",
        "go",
    )
    assert record["found"]["pairs"]["value"] == 1.0


def test_json_of_a_no_go_still_ends_with_1(groundrule):
    done = groundrule("judge-eval", "--judge", "test/random", "--json")
    assert (done.code, json.loads(done.out)["verdict"]["decision"]) == (1, "no-go")


def test_an_unknown_price_is_called_unknown(groundrule):
    said = groundrule("judge-eval", "--judge", "test/perfect", "--area", "tools").out
    assert "cost a group: 2.0 calls, 0 tokens, unknown" in said


def test_passes_say_how_often_a_group_is_read(groundrule):
    record = json.loads(groundrule("judge-eval", "--judge", "test/perfect", "--passes", "1", "--json").out)
    assert (record["spent"]["calls"], record["found"]["consistency"]["reliability"]) == (43, None)


def test_an_area_and_a_limit_choose_groups(groundrule):
    done = groundrule("judge-eval", "--judge", "test/perfect", "--area", "spec", "--limit", "3", "--json")
    record = json.loads(done.out)
    assert (record["found"]["groups"], list(record["found"]["areas"])) == (3, ["spec"])


def test_out_keeps_the_scored_groups(groundrule, tmp_path):
    out = tmp_path / "deep" / "scored.jsonl"
    groundrule("judge-eval", "--judge", "test/perfect", "--area", "twins", "--out", out)
    assert [sorted(g.rewards) for g in read_groups(out)] == [[0.7, 0.9, 0.9], [0.7, 0.9, 0.9]]


def test_a_file_of_rated_groups_is_measured(groundrule, rated):
    done = groundrule("judge-eval", rated, "--judge", "words/any")
    assert (done.code, done.out.splitlines()[0]) == (0, f"words/any on {rated}: 12 groups, 24 answers")
    assert "verdict: go\n" in done.out


def test_a_judge_that_is_a_scorer_is_measured_too(groundrule, rated):
    record = json.loads(groundrule("judge-eval", rated, "--judge", "long/any", "--json").out)
    assert (record["found"]["pairs"]["value"], record["found"]["consistency"]["groups"]) == (1.0, 0)


def test_groups_without_labels_are_named_as_left_out(groundrule, rated, tmp_path):
    write_groups(tmp_path / "mixed.jsonl", [*read_groups(rated), group_of(GOOD, BAD)])
    done = groundrule("judge-eval", tmp_path / "mixed.jsonl", "--judge", "words/any")
    assert "1 groups without labels are left out" in done.out


def test_a_run_is_searched_for_alarms_and_no_judge_is_asked(groundrule, tmp_path):
    done = groundrule("judge-eval", healthy_run(tmp_path / "run"))
    assert (done.code, done.out.splitlines()[-1], "second opinion" in done.out) == (
        0,
        "no alarm raised",
        False,
    )


def test_an_alarm_ends_with_1_and_its_remedy(groundrule, tmp_path):
    run = made_up_run(tmp_path / "run", [[group_with(0.5, 0.5)], [group_with(0.7, 0.7)]])
    done = groundrule("judge-eval", run)
    assert done.code == 1
    assert "!!  tied groups" in done.out
    assert "tied groups: raise policy.temperature" in done.out


def test_a_run_is_judged_again_by_a_named_judge(groundrule, tmp_path):
    group = group_of(GOOD, BAD)
    group.trajectories[0].reward = 0.9
    run = made_up_run(tmp_path / "run", [[group]], adapters=[b"a"])
    done = groundrule("judge-eval", run, "--judge", "words/any", "--json")
    assert json.loads(done.out)["second_opinion"]["pairs"]["value"] == 1.0


def test_alarms_as_json(groundrule, tmp_path):
    record = json.loads(groundrule("judge-eval", healthy_run(tmp_path / "run"), "--json").out)
    assert (record["steps"], record["second_opinion"], len(record["alarms"])) == (2, None, 14)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.jsonl"], "error: missing.jsonl: cannot be read: No such file or directory"),
        (["."], "error: . is not a run folder: it has no state.json"),
        (["empty.jsonl"], "error: empty.jsonl: holds no groups"),
        (["plain.jsonl"], "error: plain.jsonl: none of its 1 groups has labels; add what is known"),
        (["rated.jsonl", "--area", "form"], "no group has the area 'form'; the areas here are: facts"),
        (["--area", "ties"], "in the 3 groups chosen no answer is better than another"),
        (["--judge", "opnai/o3"], "did you mean openai/o3?"),
        (["--passes", "0"], "0 is not in the range x>=1"),
        (["run", "--area", "tools"], "a run has no areas"),
        (["run", "--out", "x.jsonl"], "a run is only judged where --judge names a judge"),
    ],
)
def test_wrong_input_ends_with_2_and_says_what_is_wrong(groundrule, rated, tmp_path, arguments, said):
    (tmp_path / "empty.jsonl").touch()
    write_groups(tmp_path / "plain.jsonl", [group_of(GOOD, BAD)])
    healthy_run(tmp_path / "run")
    done = groundrule("judge-eval", *arguments)
    assert (done.code, said in done.err) == (2, True), done.err


def test_a_wrong_label_ends_with_2_and_names_file_line_and_member(groundrule, tmp_path):
    path = tmp_path / "rated.jsonl"
    write_groups(path, [group_of(GOOD, BAD, labels={"rank": [[0]]})])
    done = groundrule("judge-eval", path, "--judge", "words/any")
    assert (done.code, f"error: {path}, line 1, column labels.rank: member 1 is in no tier" in done.err) == (
        2,
        True,
    )
