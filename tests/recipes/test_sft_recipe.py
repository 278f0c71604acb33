"""A warm-up leaves a model folder that training starts from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from groundrule.data.trajectory import Trajectory
from groundrule.errors import ConfigError, ModelError, TrainingError
from groundrule.models.load import load_model
from groundrule.models.lora import LoraSettings, adapter_parameters, add_adapter
from groundrule.models.merged import save_merged
from groundrule.recipes import sft as recipe
from groundrule.training.sft import SftSettings
from tiny import ASK, tiny_model

EXAMPLES = [
    Trajectory(messages_and_choices=[*ASK, {"role": "assistant", "content": answer}])
    for answer in ("Yes.", "No.", "Maybe.")
]
SETTINGS = SftSettings(learning_rate=0.01, epochs=4, examples_per_step=2, lora=LoraSettings(rank=2, alpha=4))


@pytest.fixture
def loads_the_tiny_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recipe, "load_model", lambda name, *, device=None: tiny_model())


def logits(model) -> torch.Tensor:
    with torch.inference_mode():
        return model.network(input_ids=torch.tensor([[1, 40, 41, 42]])).logits


def moved_model():
    model = tiny_model()
    add_adapter(model, LoraSettings(rank=2, alpha=4), seed=0)
    with torch.no_grad():
        for parameter in adapter_parameters(model).values():
            parameter.add_(0.05)
    return model


def test_a_merged_folder_loads_as_the_model_with_its_adapter(tmp_path: Path):
    model = moved_model()
    expected = logits(model)
    save_merged(model, tmp_path / "merged")
    assert torch.allclose(logits(load_model(str(tmp_path / "merged"), device="cpu")), expected, atol=1e-5)


def test_a_merged_model_speaks_by_the_same_template(tmp_path: Path):
    model = moved_model()
    save_merged(model, tmp_path / "merged")
    loaded = load_model(str(tmp_path / "merged"), device="cpu")
    assert loaded.renderer.prompt_ids(ASK) == tiny_model().renderer.prompt_ids(ASK)


def test_an_existing_folder_is_never_written_over(tmp_path: Path, loads_the_tiny_model):
    (tmp_path / "kept").mkdir()
    with pytest.raises(ModelError, match="exists already"):
        save_merged(tiny_model(), tmp_path / "kept")
    with pytest.raises(ConfigError, match="exists already"):
        recipe.train_sft(EXAMPLES, "tiny", tmp_path / "kept")


def test_a_warm_up_lowers_the_loss_and_says_what_it_did(tmp_path: Path, loads_the_tiny_model):
    lines: list[str] = []
    facts = recipe.train_sft(EXAMPLES, "tiny", tmp_path / "warm", settings=SETTINGS, report=lines.append)
    assert len(facts["losses"]) == 8  # 4 epochs of 2 steps.
    assert facts["losses"][-1] < facts["losses"][0] - 0.5
    assert (len(lines), lines[0][:18], lines[-1][:18]) == (8, "warm-up step 1/8: ", "warm-up step 8/8: ")


def test_the_folder_keeps_what_it_was_made_from(tmp_path: Path, loads_the_tiny_model):
    recipe.train_sft(EXAMPLES, "tiny", tmp_path / "warm", settings=SETTINGS, seed=3, report=lambda line: None)
    kept = json.loads((tmp_path / "warm" / "sft.json").read_text())
    assert (kept["base_model"], kept["examples"], kept["seed"]) == ("tiny", 3, 3)


def test_one_seed_gives_the_same_weights_twice(tmp_path: Path, loads_the_tiny_model):
    for name in ("one", "two"):
        recipe.train_sft(EXAMPLES, "tiny", tmp_path / name, settings=SETTINGS, report=lambda line: None)
    one, two = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("one", "two"))
    assert one == two


def test_without_examples_there_is_nothing_to_learn_from(tmp_path: Path):
    with pytest.raises(TrainingError, match="no examples"):
        recipe.train_sft([], "tiny", tmp_path / "warm")
