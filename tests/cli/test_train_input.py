"""`groundrule train`: what it says about a configuration that cannot work."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.fixture
def config(tmp_path):
    """Writes a TOML file and gives its path."""

    def write(text: str):
        path = tmp_path / "run.toml"
        path.write_text(text)
        return path

    return write


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[train]\nstepps = 3", "unknown key 'train.stepps'; did you mean 'steps'?"),
        ("[trian]\nsteps = 3", "unknown key 'trian'; did you mean 'train'?"),
        ("[policy]\nmodel = 'x'", "unknown key 'policy.model'; did you mean"),
        ("[judge]\nzzz = 1", "unknown key 'judge.zzz'; known here: model, params, verifier, combine, rubric"),
        ("[train]\nsteps = 0", "train.steps is 0: Input should be greater than or equal to 1"),
        ("[train]\ngroup_size = 1", "train.group_size is 1: Input should be greater than or equal to 2"),
        ("[train]\nadvantage = 'best'", "train.advantage is 'best': Input should be"),
        ("train = 3", "train is 3: Input should be a valid dictionary"),
        ("[train", "is not a TOML file: Expected ']'"),
        ("[scenarios]\nsource = 'nowhere.jsonl'", "nowhere.jsonl"),
        ("[scenarios]\nsource = 'suport'", "suport"),
        ("[judge]\nmodel = 'opnai/o3'", "did you mean openai/o3?"),
        ("[judge]\nmodel = 'local/likelyhood'", "'local/likelyhood' is not a judge"),
        ("[judge]\nparams = { bound = 1 }", "local/likelihood got bound=1"),
    ],
)
def test_a_configuration_that_cannot_work_ends_with_2(groundrule, config, text, said):
    done = groundrule("train", config(text))
    assert (done.code, said in done.err, "Traceback" in done.err) == (2, True, False), done.err


def test_the_message_begins_with_the_file(groundrule, config):
    path = config("[train]\nstepps = 3")
    assert (
        groundrule("train", path).err == f"error: {path}: unknown key 'train.stepps'; did you mean 'steps'?\n"
    )


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("no.toml", "error: no.toml cannot be read: No such file or directory"),
        (".", "error: . cannot be read"),
    ],
)
def test_a_file_that_cannot_be_read_ends_with_2(groundrule, path, said):
    done = groundrule("train", path)
    assert (done.code, said in done.err) == (2, True)


def test_bytes_that_are_no_text_end_with_2(groundrule, tmp_path):
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe")
    assert groundrule("train", tmp_path / "a.toml").code == 2


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("train.stepps=3", "unknown key 'train.stepps'; did you mean 'steps'?"),
        ("train.steps=many", "train.steps is 'many': Input should be a valid integer"),
        ("train.steps=", "train.steps is ''"),
        ("steps=3", "'steps=3' is not SECTION.KEY=VALUE"),
        ("train.steps", "'train.steps' is not SECTION.KEY=VALUE"),
        ("train.steps.more=3", "train.steps is {'more': 3}"),
    ],
)
def test_set_is_checked_like_the_file(groundrule, config, change, said):
    done = groundrule("train", config(""), "--set", change)
    assert (done.code, said in done.err) == (2, True), done.err


def test_set_below_a_section_that_is_no_table_is_named(groundrule, config):
    done = groundrule("train", config("train = 3"), "--set", "train.steps=2")
    assert (done.code, "train is 3" in done.err) == (2, True)


def test_a_wrong_configuration_leaves_no_run_folder(groundrule, config, tmp_path):
    groundrule("train", config("[judge]\nmodel = 'opnai/o3'"), "--run", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_base_model_that_cannot_be_loaded_leaves_no_run_folder(groundrule, config, tmp_path, judge_named):
    judge_named("long", "named_judges:longest")
    text = "[judge]\nmodel = 'long/any'\n[policy]\nbase_model = './no-model'"
    done = groundrule("train", config(text), "--run", tmp_path / "run")
    assert (done.code, "model './no-model' cannot be loaded" in done.err, (tmp_path / "run").exists()) == (
        1,
        True,
        False,
    )


WITHOUT_TORCH = """
import sys
sys.modules["torch"] = None
from groundrule.cli.main import main
main(sys.argv[1:])
"""


@pytest.mark.parametrize("verb", [["train", "run.toml"], ["score", "a.jsonl"], ["demo"]])
def test_without_torch_the_message_is_one_line_with_the_remedy(config, tmp_path, verb):
    config("")
    (tmp_path / "a.jsonl").write_text('{"messages": [{"role": "assistant", "content": "Yes."}]}\n')
    command = [sys.executable, "-c", WITHOUT_TORCH, *verb]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    [error] = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert (done.returncode != 0, "pip install 'groundrule[train]'" in error, "Traceback" in done.stderr) == (
        True,
        True,
        False,
    ), done.stderr
