"""Reward models of which all weights are trained: gradients, learning, files, and who may not be changed."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from groundrule.data.group import TrajectoryGroup
from groundrule.data.trajectory import Trajectory
from groundrule.errors import ConfigError
from groundrule.models import pool
from groundrule.models.lora import LoraSettings, add_adapter
from groundrule.models.reward_files import load_reward_model, read_facts
from groundrule.models.reward_judge import reward_model_judge
from groundrule.rewards.learned import LearnedReward
from groundrule.training.ranking_batch import read_rankings
from groundrule.training.reward_evaluation import evaluate_rankings
from groundrule.training.reward_model import RewardModelSettings, RewardModelTrainer
from preferences import ranking, shorter_is_better
from tiny import tiny_model

RANKINGS = [
    ranking("Yes.", "No.", "Ask us."),
    ranking("Behind us.", "Behind", question="Parking?"),
]


def trainer(**settings: object) -> RewardModelTrainer:
    return RewardModelTrainer(tiny_model(), RewardModelSettings(tuning="full", **settings))


def trained() -> RewardModelTrainer:
    made = trainer(learning_rate=1e-3, epochs=3)
    for _ in made.fit(shorter_is_better(60, seed=0)):
        pass
    return made


def group() -> TrajectoryGroup:
    ask = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Refunds?"}]
    said = ("Yes.", "No, not at all.")
    return TrajectoryGroup(
        [Trajectory(messages_and_choices=[*ask, {"role": "assistant", "content": t}]) for t in said]
    )


def test_every_weight_of_the_body_and_the_head_is_trained() -> None:
    made = trainer()
    body = dict(made.reward_model.model.core.named_parameters())

    assert set(made.parameters) == {*body, "head.weight"}


def test_gradients_are_finite_differences_of_the_loss() -> None:
    made = trainer()
    with torch.no_grad():
        made.reward_model.head.weight.copy_(torch.linspace(-0.3, 0.3, 32)[None])
    read = read_rankings(RANKINGS, made.reward_model)
    made.accumulate(read)
    gradients = {name: weight.grad.clone() for name, weight in made.parameters.items()}

    for name in ("embed_tokens.weight", "layers.0.mlp.down_proj.weight", "norm.weight"):
        weight, gradient = made.parameters[name], gradients[name]
        place = int(gradient.abs().argmax())
        found = float(gradient.flatten()[place])
        losses = []
        for sign in (1, -1):
            with torch.no_grad():
                weight.flatten()[place] += sign * 1e-3
                losses.append(made.accumulate(read)[0])
                weight.flatten()[place] -= sign * 1e-3
        assert (losses[0] - losses[1]) / 2e-3 == pytest.approx(found, rel=0.02)


def test_a_rule_is_learned_and_holds_on_prompts_that_were_not_seen() -> None:
    found = evaluate_rankings(trained().reward_model, shorter_is_better(30, seed=1))

    assert found.accuracy.value is not None
    assert found.accuracy.value > 0.8


def test_saved_and_loaded_it_gives_the_same_scores(tmp_path: Path) -> None:
    made = trained()
    made.save(tmp_path / "whole")

    before = LearnedReward(made.reward_model).score_now(group())
    after = LearnedReward(load_reward_model(tmp_path / "whole")).score_now(group())

    assert [s.value for s in after] == pytest.approx([s.value for s in before], abs=1e-6)


def test_its_folder_holds_the_weights_and_says_so(tmp_path: Path) -> None:
    trainer().save(tmp_path / "whole")

    assert read_facts(tmp_path / "whole").lora is None
    assert (tmp_path / "whole" / "model" / "model.safetensors").exists()


def test_by_name_it_is_a_judge_that_is_loaded_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_models", {})
    trainer().save(tmp_path / "whole")

    first, second = (reward_model_judge(str(tmp_path / "whole")) for _ in range(2))

    assert first.model is second.model


def test_a_model_that_others_use_is_refused() -> None:
    model = tiny_model()
    add_adapter(model, LoraSettings(rank=2), seed=0)

    with pytest.raises(ConfigError, match="tiny carries an adapter, so others use its weights"):
        RewardModelTrainer(model, RewardModelSettings(tuning="full"))


def test_weights_that_are_too_coarse_are_refused() -> None:
    model = tiny_model()
    model.network.to(torch.bfloat16)

    with pytest.raises(
        ConfigError, match=r"torch.bfloat16, in which small steps are lost; load it with dtype"
    ):
        RewardModelTrainer(model, RewardModelSettings(tuning="full"))
