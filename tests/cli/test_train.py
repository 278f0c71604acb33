"""`groundrule train`: a training from its file to its report, with the tiny model."""

from __future__ import annotations

import json

import pytest

from tiny_training import use_tiny_model, write_scenarios


@pytest.fixture
def config(monkeypatch, judge_named, tmp_path):
    """A configuration file that trains in a second."""
    use_tiny_model(monkeypatch)
    judge_named("long", "named_judges:longest")
    path = tmp_path / "run.toml"
    path.write_text(
        f"""
        [scenarios]
        source = "{write_scenarios(tmp_path / "scenarios.jsonl")}"
        [policy]
        base_model = "tiny"
        max_tokens = 6
        [judge]
        model = "long/any"
        [train]
        steps = 5
        groups_per_step = 1
        group_size = 2
        [run]
        project = "tests"
        name = "tiny"
        """
    )
    return path


def kept(folder) -> dict:
    return json.loads((folder / "config.json").read_text("utf-8"))


def test_a_training_says_where_it_is_kept_how_it_goes_and_where_the_report_is(groundrule, config, tmp_path):
    done = groundrule("train", config, "--steps", "2", "--run", tmp_path / "run")
    starts = [
        line.split(" ")[0] for line in done.out.splitlines() if line.startswith(("run", "step", "report"))
    ]
    assert (done.code, starts) == (0, ["run", "step", "step", "report:"])


def test_a_training_leaves_a_report(groundrule, config, tmp_path):
    groundrule("train", config, "--steps", "1", "--run", tmp_path / "run")
    assert (tmp_path / "run" / "report.html").stat().st_size > 1000


def test_without_a_folder_the_run_is_kept_by_project_and_name(groundrule, config, tmp_path):
    groundrule("train", config, "--steps", "1")
    assert (tmp_path / "runs" / "tests" / "tiny" / "state.json").exists()


def test_the_options_replace_what_the_file_says(groundrule, config, tmp_path):
    changes = ["--steps", "1", "--seed", "7", "--set", "policy.system=Rhyme.", "--set", "train.group_size=3"]
    groundrule("train", config, "--run", tmp_path / "run", *changes)
    found = kept(tmp_path / "run")
    values = [
        found["train"]["steps"],
        found["run"]["seed"],
        found["policy"]["system"],
        found["train"]["group_size"],
    ]
    assert values == [1, 7, "Rhyme.", 3]


def test_the_same_command_goes_on_where_the_run_was(groundrule, config, tmp_path):
    groundrule("train", config, "--steps", "1", "--run", tmp_path / "run")
    done = groundrule("train", config, "--steps", "2", "--run", tmp_path / "run")
    assert [line[:8] for line in done.out.splitlines() if line.startswith("step ")] == ["step 2/2"]


def test_resuming_with_another_setting_ends_with_2_and_names_it(groundrule, config, tmp_path):
    groundrule("train", config, "--steps", "1", "--run", tmp_path / "run")
    done = groundrule("train", config, "--steps", "1", "--run", tmp_path / "run", "--set", "train.epochs=2")
    assert (done.code, "train.epochs was 1 and is 2" in done.err) == (2, True)


def test_the_doctor_understands_the_run(groundrule, config, tmp_path):
    groundrule("train", config, "--steps", "1", "--run", tmp_path / "run")
    assert (
        "ok all 2 scored trajectories carry their sampled tokens"
        in groundrule("doctor", tmp_path / "run").out
    )
