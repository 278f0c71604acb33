"""Checkpoints: whole or not there, taken in the order of their steps, and resumed to the last bit."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from groundrule._util import folders
from groundrule.data.group import TrajectoryGroup
from groundrule.data.runs import Run
from groundrule.data.trajectory import Trajectory
from groundrule.errors import CheckpointError, ConfigError
from groundrule.models.load import LanguageModel
from groundrule.models.lora import LoraSettings
from groundrule.training.checkpoints import (
    latest_checkpoint,
    load_checkpoint,
    save_checkpoint,
    verify_checkpoint,
)
from groundrule.training.lora_trainer import LoraTrainer, TrainerSettings
from groundrule.training.sft import SftSettings, SftTrainer
from tiny import sampled_trajectories, tiny_model

FILES = [
    "adapter_config.json",
    "adapter_model.safetensors",
    "manifest.json",
    "optimizer.safetensors",
    "trainer.json",
]
IDS = torch.tensor([[1, 30, 31, 2, 40]])


def trainer(seed: int = 0, **settings: Any) -> LoraTrainer:
    chosen = {"lora": LoraSettings(rank=4, alpha=8), "learning_rate": 0.01, **settings}
    return LoraTrainer(tiny_model(), TrainerSettings(**chosen), seed=seed)


def learn(made: LoraTrainer, *seeds: int) -> None:
    """One step for each seed, on answers sampled from the policy as it is then."""
    for seed in seeds:
        made.step([TrajectoryGroup(sampled_trajectories(made.model, [1.0, 0.0, 0.4], seed=seed))])


def weights(made: LoraTrainer) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in made.model.network.named_parameters()}


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)


def logits(made: LoraTrainer) -> torch.Tensor:
    with torch.inference_mode():
        return made.model.network(input_ids=IDS, use_cache=False).logits  # type: ignore[no-any-return]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """A checkpoint of two steps."""
    made = trainer()
    learn(made, 1, 2)
    save_checkpoint(made, tmp_path / "step-000002", step=2)
    return tmp_path / "step-000002"


def test_a_checkpoint_holds_plain_files_only(saved: Path) -> None:
    assert sorted(path.name for path in saved.iterdir()) == FILES


def test_the_adapter_is_written_under_peft_s_names(saved: Path) -> None:
    name = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight"

    assert load_file(saved / "adapter_model.safetensors")[name].shape == (4, 32)


def test_step_ten_comes_after_step_nine(tmp_path: Path) -> None:
    for step in (9, 10, 100):
        (tmp_path / "run/checkpoints" / f"step-{step:06d}").mkdir(parents=True)
    (tmp_path / "run/checkpoints/step-final.tmp").mkdir()
    (tmp_path / "run/config.json").write_text("{}")
    (tmp_path / "run/state.json").write_text(json.dumps({"version": 1, "step": 100, "state": {}}))

    with Run.open(tmp_path / "run", read_only=True) as run:
        assert run.checkpoint_steps() == [9, 10, 100]


def test_a_cut_checkpoint_is_passed_over_with_a_warning(
    saved: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cut = saved.with_name("step-000003")
    save_checkpoint(trainer(), cut, step=3)
    adapter = cut / "adapter_model.safetensors"
    adapter.write_bytes(adapter.read_bytes()[: adapter.stat().st_size // 2])

    assert latest_checkpoint([saved, cut]) == saved
    assert "step-000003/adapter_model.safetensors is not what its manifest says" in caplog.text


def test_saving_again_replaces_a_cut_checkpoint(saved: Path) -> None:
    (saved / "adapter_model.safetensors").write_bytes(b"")
    (saved / "stray").write_text("")

    save_checkpoint(trainer(), saved, step=2)

    verify_checkpoint(saved)
    assert sorted(path.name for path in saved.iterdir()) == FILES


@pytest.mark.parametrize("name", FILES)
def test_any_missing_file_makes_a_checkpoint_incomplete(saved: Path, name: str) -> None:
    (saved / name).unlink()

    assert latest_checkpoint([saved]) is None


@pytest.mark.parametrize("manifest", ["", "[]", '{"step": 2}', '{"files": {}}', '{"files": []}', "null"])
def test_a_manifest_that_does_not_list_every_file_makes_a_checkpoint_incomplete(
    saved: Path, manifest: str
) -> None:
    (saved / "manifest.json").write_text(manifest)

    with pytest.raises(CheckpointError, match="has no readable manifest"):
        verify_checkpoint(saved)


def test_a_changed_byte_is_found(saved: Path) -> None:
    facts = (saved / "trainer.json").read_text()
    (saved / "trainer.json").write_text(facts.replace('"step": 2', '"step": 3'))

    with pytest.raises(CheckpointError, match=r"trainer\.json is not what its manifest says"):
        load_checkpoint(trainer(), saved)


@pytest.mark.parametrize("written", [0, 1])
def test_a_crash_between_files_leaves_no_folder_of_that_step(
    saved: Path, written: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import safetensors.torch

    save_file, left = safetensors.torch.save_file, [None] * written

    def crash(*args: Any, **more: Any) -> None:
        if not left:
            raise KeyboardInterrupt
        left.pop()
        save_file(*args, **more)

    monkeypatch.setattr(safetensors.torch, "save_file", crash)
    target = saved.with_name("step-000003")

    with pytest.raises(KeyboardInterrupt):
        save_checkpoint(trainer(), target, step=3)

    assert not target.exists()
    assert latest_checkpoint([saved, target]) == saved


def test_a_crash_before_the_last_move_leaves_no_folder_of_that_step(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: Any) -> None:
        raise KeyboardInterrupt

    target = saved.with_name("step-000003")
    with monkeypatch.context() as patch:
        patch.setattr(folders.os, "replace", crash)
        with pytest.raises(KeyboardInterrupt):
            save_checkpoint(trainer(), target, step=3)

    assert not target.exists()
    save_checkpoint(trainer(), target, step=3)
    verify_checkpoint(target)
    assert sorted(os.listdir(saved.parent)) == ["step-000002", "step-000003"]


def test_the_resumed_adapter_answers_like_the_saved_one(tmp_path: Path) -> None:
    made, resumed = trainer(), trainer(seed=5)
    learn(made, 1, 2)
    save_checkpoint(made, tmp_path / "c", step=2)

    facts = load_checkpoint(resumed, tmp_path / "c")

    assert torch.equal(logits(resumed), logits(made))
    assert facts["step"] == 2


def test_two_steps_and_one_after_a_resume_are_three_steps_bit_for_bit(tmp_path: Path) -> None:
    whole, first, second = trainer(), trainer(), trainer(seed=5)
    learn(whole, 1, 2, 3)
    learn(first, 1, 2)
    save_checkpoint(first, tmp_path / "c", step=2)

    load_checkpoint(second, tmp_path / "c")
    learn(second, 3)

    assert same(weights(second), weights(whole))


def test_a_step_without_a_learning_rate_leaves_the_restored_adapter_alone(saved: Path) -> None:
    resumed = trainer(seed=5)
    load_checkpoint(resumed, saved)
    before = weights(resumed)
    for group in resumed.optimizer.param_groups:
        group["lr"] = 0.0

    with resumed.model.lock:
        for parameter in resumed.parameters.values():
            parameter.grad = torch.ones_like(parameter)
        resumed.optimizer.step()

    assert same(weights(resumed), before)


def test_the_same_weights_are_trainable_after_a_resume(saved: Path) -> None:
    fresh, resumed = trainer(), trainer()

    load_checkpoint(resumed, saved)

    trainable = [name for name, p in resumed.model.network.named_parameters() if p.requires_grad]
    assert sorted(trainable) == list(fresh.parameters)
    assert all("lora_" in name for name in trainable)


def test_the_optimizer_holds_the_weights_that_are_in_use_after_a_resume(saved: Path) -> None:
    resumed = trainer()

    load_checkpoint(resumed, saved)

    held = {id(p) for group in resumed.optimizer.param_groups for p in group["params"]}
    assert held == {id(p) for p in resumed.model.network.parameters() if p.requires_grad}


def test_the_model_is_still_the_model_after_a_resume(saved: Path) -> None:
    resumed = trainer()
    model = resumed.model

    load_checkpoint(resumed, saved)

    assert resumed.model is model
    assert isinstance(model, LanguageModel)


def test_the_reference_of_a_resumed_adapter_is_the_base_model_and_the_distance_is_logged(saved: Path) -> None:
    resumed = trainer(policy_loss={"kl_coef": 0.1})
    load_checkpoint(resumed, saved)

    metrics = resumed.step([TrajectoryGroup(sampled_trajectories(resumed.model, [1.0, 0.0]))])

    assert metrics["policy/kl_reference"] > 1e-4


def test_a_trainer_that_never_stepped_is_saved_and_resumed(tmp_path: Path) -> None:
    made, resumed = trainer(), trainer(seed=5)
    save_checkpoint(made, tmp_path / "c", step=1)

    load_checkpoint(resumed, tmp_path / "c")

    assert same(weights(resumed), weights(made))
    assert not resumed.optimizer.state


def test_what_a_resumed_optimizer_knew_before_is_forgotten(tmp_path: Path) -> None:
    made, resumed = trainer(), trainer()
    save_checkpoint(made, tmp_path / "c", step=1)
    learn(resumed, 1)

    load_checkpoint(resumed, tmp_path / "c")

    assert not resumed.optimizer.state


def test_a_trainer_on_examples_is_saved_and_resumed_like_one_on_rewards(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Dogs?"}, {"role": "assistant", "content": "Yes."}]
    settings = SftSettings(lora=LoraSettings(rank=4, alpha=8), learning_rate=0.01)
    made, resumed = (SftTrainer(tiny_model(), settings, seed=seed) for seed in (0, 5))
    list(made.fit([Trajectory(messages_and_choices=turns)]))
    save_checkpoint(made, tmp_path / "c", step=1)

    load_checkpoint(resumed, tmp_path / "c")

    assert all(torch.equal(p, made.parameters[name]) for name, p in resumed.parameters.items())
    assert len(resumed.optimizer.state) == len(made.parameters)


def test_facts_of_the_caller_are_given_back(tmp_path: Path) -> None:
    save_checkpoint(trainer(), tmp_path / "c", step=1, extra={"cursor": 7})

    assert load_checkpoint(trainer(), tmp_path / "c")["extra"] == {"cursor": 7}


def test_a_checkpoint_of_another_base_model_is_refused(saved: Path) -> None:
    other = trainer()
    other.model.name = "other"

    with pytest.raises(CheckpointError, match="was trained on 'tiny', the model in memory is 'other'"):
        load_checkpoint(other, saved)


def test_a_checkpoint_of_another_rank_is_refused(saved: Path) -> None:
    with pytest.raises(ConfigError, match="another rank"):
        load_checkpoint(trainer(lora=LoraSettings(rank=2)), saved)


def test_a_refused_checkpoint_leaves_the_trainer_as_it_was(saved: Path) -> None:
    made = trainer(lora=LoraSettings(rank=2))
    before = weights(made)

    with pytest.raises(ConfigError):
        load_checkpoint(made, saved)

    assert same(weights(made), before)


def test_there_is_no_newest_checkpoint_where_there_is_none() -> None:
    assert latest_checkpoint([]) is None
