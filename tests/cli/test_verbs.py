"""Help, exit codes and messages of every verb."""

from __future__ import annotations

import pytest

from groundrule.cli.main import VERBS, main
from groundrule.data import TrajectoryGroup
from made_up_runs import attempt, group_with, healthy_run, made_up_run


@pytest.mark.parametrize("arguments", [["--help"], ["-h"], *([verb, "--help"] for verb in VERBS)])
def test_help_is_shown(groundrule, arguments):
    done = groundrule(*arguments)
    assert (done.code, done.out.startswith("Usage: ")) == (0, True)


def test_help_lists_every_verb_with_a_line_that_fits(groundrule):
    said = groundrule("--help").out
    assert [verb for verb in VERBS if f"  {verb} " not in said] == []


@pytest.mark.parametrize("verb", [["models", "pull"], ["models", "list"]])
def test_help_of_a_verb_below_a_verb_is_shown(groundrule, verb):
    assert groundrule(*verb, "--help").code == 0


def test_the_version_is_shown(groundrule):
    assert groundrule("--version").out == "groundrule, version 0.1.0\n"


def test_an_unknown_verb_ends_with_2(groundrule):
    done = groundrule("scoer")
    assert (done.code, "No such command 'scoer'" in done.err) == (2, True)


def test_an_unknown_option_ends_with_2(groundrule):
    done = groundrule("train", "--stps", "3", "c.toml")
    assert (done.code, "No such option '--stps'" in done.err) == (2, True)


def test_view_writes_the_report_and_prints_where(groundrule, tmp_path):
    done = groundrule("view", healthy_run(tmp_path / "run"))
    assert (done.code, done.out, (tmp_path / "run" / "report.html").exists()) == (
        0,
        f"{tmp_path / 'run' / 'report.html'}\n",
        True,
    )


@pytest.mark.parametrize("verb", ["view", "doctor"])
def test_a_folder_that_is_no_run_ends_with_2(groundrule, verb, tmp_path):
    done = groundrule(verb, tmp_path)
    assert (done.code, done.err) == (2, f"error: {tmp_path} is not a run folder: it has no state.json\n")


def test_doctor_finds_nothing_wrong_with_a_healthy_run(groundrule, tmp_path):
    done = groundrule("doctor", healthy_run(tmp_path / "run"))
    assert (done.code, [line[:3] for line in done.out.splitlines()]) == (0, ["ok "] * 7)


SICK = {
    "ties": ([group_with(0.5, 0.5)], "groups are ties"),
    "no logprobs": ([group_with(0.2, 0.6, logprobs=False)], "carry no sampled tokens with logprobs"),
    "truncated": ([group_with(0.2, 0.6, finish_reason="length")], "were cut at policy.max_tokens"),
    "all failed": ([TrajectoryGroup([ValueError("no key")])], "rollouts failed"),
    "unscored": ([TrajectoryGroup([attempt(unscored="the judge is down")])], "the judge is down"),
}


@pytest.mark.parametrize(("groups", "said"), SICK.values(), ids=SICK.keys())
def test_doctor_marks_the_cause_and_ends_with_1(groundrule, tmp_path, groups, said):
    done = groundrule("doctor", made_up_run(tmp_path / "run", [groups, groups]))
    marked = [line for line in done.out.splitlines() if line.startswith("!! ")]
    assert (done.code, [said in line for line in marked]) == (1, [True])


def test_doctor_notices_that_the_adapter_never_moved(groundrule, tmp_path):
    run = made_up_run(tmp_path / "run", [[group_with(0.2, 0.6)]] * 2, adapters=[b"same", b"same"])
    done = groundrule("doctor", run)
    assert (done.code, "!! the adapter is the same in all 2 kept checkpoints" in done.out) == (1, True)


def test_pulling_an_unknown_model_ends_with_2_and_names_the_known_one(groundrule):
    done = groundrule("models", "pull", "smollm3")
    assert (
        done.code,
        "'smollm3' is not an embedded model; the embedded one is 'smollm2-135m'" in done.err,
    ) == (
        2,
        True,
    )


def test_listing_models_says_that_nothing_is_pulled_yet(groundrule):
    assert groundrule("models", "list").out == "smollm2-135m\tnot pulled\n"


def raising(error: BaseException):
    def read_groups(*_: object) -> None:
        raise error

    return read_groups


@pytest.mark.parametrize("name", ["torch", "transformers", "peft", "safetensors", "uvicorn"])
def test_a_missing_training_package_is_one_line_with_the_remedy(groundrule, monkeypatch, name):
    missing = ModuleNotFoundError(f"No module named {name!r}", name=name)
    monkeypatch.setattr("groundrule.data.records.read_groups", raising(missing))
    done = groundrule("score", "a.jsonl")
    assert (done.code, done.err) == (
        1,
        f"error: {name} is not installed; run: pip install 'groundrule[train]'\n",
    )


def test_a_missing_module_of_our_own_is_a_bug_and_not_hidden(monkeypatch):
    missing = ModuleNotFoundError("No module named 'groundrule.dta'", name="groundrule.dta")
    monkeypatch.setattr("groundrule.data.records.read_groups", raising(missing))
    with pytest.raises(ModuleNotFoundError):
        main(["score", "a.jsonl"])


def test_an_interrupted_command_ends_with_130_and_says_how_to_go_on(groundrule, monkeypatch):
    monkeypatch.setattr("groundrule.data.records.read_groups", raising(KeyboardInterrupt()))
    done = groundrule("score", "a.jsonl")
    assert (done.code, done.err.strip()) == (
        130,
        "stopped; a training goes on from its last complete step when the same command is run again",
    )
