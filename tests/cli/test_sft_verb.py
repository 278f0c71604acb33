"""`groundrule sft`: conversations in, a model folder out."""

from __future__ import annotations

import pytest

from groundrule._util import jsonl
from groundrule.recipes import sft as recipe
from tiny import tiny_model


@pytest.fixture
def examples(monkeypatch, tmp_path):
    monkeypatch.setattr(recipe, "load_model", lambda name, *, device=None: tiny_model())
    path = tmp_path / "examples.jsonl"
    asked = {"role": "user", "content": "Refunds?"}
    jsonl.write(
        path, [{"messages": [asked, {"role": "assistant", "content": said}]} for said in ("Yes.", "No.")]
    )
    return path


def test_it_writes_a_model_and_says_how_the_loss_fell(examples, groundrule, tmp_path):
    done = groundrule("sft", str(examples), "--out", str(tmp_path / "warm"), "--learning-rate", "0.01")
    assert done.code == 0
    assert (tmp_path / "warm" / "model.safetensors").exists()
    assert "over 2 examples" in done.out


def test_an_example_without_an_answer_is_named(examples, groundrule, tmp_path):
    jsonl.write(examples, [{"messages": [{"role": "user", "content": "Refunds?"}]}])
    done = groundrule("sft", str(examples), "--out", str(tmp_path / "warm"))
    assert (done.code, "example 0 has no assistant turn" in done.err) == (1, True)


def test_a_folder_that_exists_is_wrong_input(examples, groundrule, tmp_path):
    done = groundrule("sft", str(examples), "--out", str(tmp_path))
    assert (done.code, "exists already" in done.err) == (2, True)


def test_a_file_that_is_not_there_is_wrong_input(groundrule, tmp_path):
    done = groundrule("sft", str(tmp_path / "none.jsonl"), "--out", str(tmp_path / "warm"))
    assert done.code == 2
