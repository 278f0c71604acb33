"""`groundrule rubric`, and `groundrule verify --kind universal`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from groundrule.llm import ScriptedClient
from groundrule.rewards import Rubric

WEAK = {"id": "c1", "text": "names the day and the place", "kind": "evidence"}


def maker(name, params) -> ScriptedClient:
    """Makes the same rubric of everything."""
    return ScriptedClient(lambda request: {"criteria": [WEAK]})


def reader(name, params) -> ScriptedClient:
    """Meets every criterion, and finds "four weeks" in everything that says 28 days."""

    def answer(request):
        system, user = (message["content"] for message in request.messages)
        if "Criteria, in random order" in system:
            return {"criteria": [{"criterion": "1", "quote": "28 days", "verdict": "met"}]}
        said = user.split(" ANSWER>>>\n")[1].split("\n<<<")[0]
        return {"quote": said, "verdict": "same" if "28 days" in said else "different"}

    return ScriptedClient(answer)


@pytest.fixture
def named(judge_named):
    judge_named("maker", "test_rubric_verb:maker")
    judge_named("reader", "test_rubric_verb:reader")


@pytest.fixture
def spec(tmp_path) -> Path:
    (tmp_path / "spec.txt").write_text("You announce events.")
    return tmp_path / "spec.txt"


@pytest.fixture
def answers(tmp_path) -> Path:
    records = [
        {"question": "How long?", "answer": "Four weeks!", "reference": "four weeks"},
        {"question": "How long?", "answer": "For 28 days.", "reference": "four weeks"},
        {"question": "How long?", "answer": "For a year.", "reference": "four weeks"},
        {"question": "How much?", "answer": r"\boxed{5}", "reference": "5", "check": "math"},
        {"question": "How long?", "answer": "Solution:", "reference": "four weeks"},
    ]
    file = tmp_path / "a.jsonl"
    file.write_text("".join(json.dumps(record) + "\n" for record in records))
    return file


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_rubric_is_made_shown_linted_and_written(groundrule, named, spec, tmp_path):
    done = groundrule("rubric", spec, "--judge", "maker/x", "--out", tmp_path / "r.toml")
    assert done.code == 0
    assert done.out.splitlines()[0] == "c1 [evidence, weight 1] names the day and the place"
    assert "! c1: compound: joins two demands at 'and the place'" in done.out
    assert Rubric.load(tmp_path / "r.toml").fits("You announce events.")


def test_a_rubric_is_made_for_one_scenario(groundrule, named, spec, tmp_path):
    (tmp_path / "s.jsonl").write_text('{"id": "fair", "question": "Announce the fair."}\n')
    more = ["--scenarios", tmp_path / "s.jsonl", "--out", tmp_path / "r.toml"]
    assert groundrule("rubric", "compile", spec, "--judge", "maker/x", *more).code == 0
    assert Rubric.load(tmp_path / "r.toml").scenario == "Announce the fair."


def test_an_unknown_scenario_is_wrong_input(groundrule, named, spec, tmp_path):
    (tmp_path / "s.jsonl").write_text('{"id": "fair", "question": "Announce the fair."}\n')
    more = ["--scenarios", tmp_path / "s.jsonl", "--scenario", "fare"]
    done = groundrule("rubric", spec, "--judge", "maker/x", *more)
    assert (done.code, "has no scenario 'fare'" in done.err) == (2, True)


def test_a_weak_rubric_ends_the_check_with_1(groundrule, tmp_path):
    Rubric.model_validate({"criteria": [WEAK]}).save(tmp_path / "r.toml")
    done = groundrule("rubric", "check", tmp_path / "r.toml")
    assert (done.code, "compound" in done.out) == (1, True)


def test_a_sound_rubric_ends_it_with_0(groundrule, tmp_path):
    sound = {**WEAK, "text": "names the day of the event", "essential": True}
    Rubric.model_validate({"criteria": [sound]}).save(tmp_path / "r.toml")
    done = groundrule("rubric", "check", tmp_path / "r.toml")
    assert (done.code, done.out.startswith(f"{tmp_path / 'r.toml'}: 1 criteria, content ")) == (0, True)


def test_an_edited_rubric_is_wrong_input_until_it_is_frozen_again(groundrule, tmp_path):
    path = tmp_path / "r.toml"
    Rubric.model_validate({"criteria": [{**WEAK, "text": "names the day", "essential": True}]}).save(path)
    path.write_text(path.read_text().replace("names the day", "names the hour"))
    assert groundrule("rubric", "check", path).code == 2
    assert groundrule("rubric", "check", path, "--freeze").code == 0
    assert groundrule("rubric", "check", path).code == 0


def test_verify_scores_by_the_layers_that_apply(groundrule, named, answers, tmp_path):
    done = groundrule("verify", "--kind", "universal", "--judge", "reader/x", answers)
    assert done.code == 0
    written = read(tmp_path / "a.verified.jsonl")
    assert [r["score"] for r in written] == [1.0, 1.0, 0.0, 1.0, 0.0]
    layers = [next(name for name in r["parts"] if name.startswith("layer/")) for r in written]
    assert layers == ["layer/reference"] * 3 + ["layer/check", "layer/gate"]


def test_verify_takes_a_rubric_and_a_choice_of_layers(groundrule, named, answers, tmp_path):
    Rubric.model_validate({"criteria": [{**WEAK, "text": "says 28 days"}]}).save(tmp_path / "r.toml")
    more = ["--rubric", tmp_path / "r.toml", "--layers", "rubric"]
    assert groundrule("verify", "--kind", "universal", "--judge", "reader/x", *more, answers).code == 0
    assert [r["score"] for r in read(tmp_path / "a.verified.jsonl")] == [0.0, 1.0, 0.0, 0.0, 0.0]


def test_checks_alone_need_no_judge_and_leave_the_rest_without_a_score(groundrule, answers, tmp_path):
    done = groundrule("verify", "--kind", "universal", "--layers", "check", answers)
    assert (done.code, "line 1" in done.err) == (1, True)
    assert [r["score"] for r in read(tmp_path / "a.verified.jsonl")] == [None, None, None, 1.0, 0.0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--kind", "universal"], "needs --judge NAME"),
        (["--kind", "exact", "--judge", "reader/x"], "are for --kind universal"),
        (["--kind", "universal", "--judge", "reader/x", "--layers", "rubrics"], "did you mean 'rubric'"),
        (["--kind", "universal", "--judge", "reader/x", "--rubric", "none.toml"], "none.toml"),
    ],
)
def test_options_that_do_not_fit_are_wrong_input(groundrule, named, answers, options, said):
    done = groundrule("verify", *options, answers)
    assert (done.code, said in done.err) == (2, True)
