"""The reward model: trained on the rankings, measured on those that were held out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from groundrule._util.seed import derive
from groundrule.models import pool
from groundrule.models.reward_judge import shared_reward_model
from groundrule.models.reward_model import RewardModel
from groundrule.recipes.rlhf.config import RlhfConfig
from groundrule.recipes.rlhf.progress import told
from groundrule.recipes.rlhf.rankings import learned_from, measured_on
from groundrule.training.reward_evaluation import evaluate_rankings
from groundrule.training.reward_model import RewardModelTrainer

FOLDER = "reward-model"


def reward_folder(config: RlhfConfig) -> Path:
    """Where the reward model of the chain stands."""
    given = config.reward_model.folder
    return Path(given) if given else config.folder / FOLDER


def train_reward_model(config: RlhfConfig, report: Callable[[str], None]) -> dict[str, Any]:
    """Train it, unless one is given, and measure it. `evaluation` None: no ranking was held out."""
    folder, steps = reward_folder(config), list[dict[str, float]]()
    if config.reward_model.folder:
        given = shared_reward_model(folder, config.reward_model.base_model)
        return {"folder": str(folder), "steps": steps, "evaluation": _measured(given, config)}
    base = config.reward_model.base_model or config.policy.base_model
    shared = config.reward_model.tuning == "lora"  # Training all weights changes them for everybody.
    model = pool.for_training(base, config.policy.device, shared=shared)
    try:
        reward_model, steps = _trained(config, model, folder, report)
        return {"folder": str(folder), "steps": steps, "evaluation": _measured(reward_model, config)}
    finally:
        pool.release(model)


def _trained(
    config: RlhfConfig, model: Any, folder: Path, report: Callable[[str], None]
) -> tuple[RewardModel, list[dict[str, float]]]:
    settings, rankings = config.reward_model.settings, learned_from(config.folder)
    trainer = RewardModelTrainer(model, settings, seed=derive(config.run.seed, "reward model"))
    teaching = sum(len(ranking.order) > 1 for ranking in rankings)
    count = settings.epochs * -(-teaching // settings.rankings_per_step)
    steps = []
    for number, metrics in enumerate(trainer.fit(rankings), start=1):
        steps.append(metrics)
        if told(number, count):
            report(
                f"reward model step {number}/{count}: loss {metrics['reward_model/loss']:.3f}, "
                f"accuracy {metrics['reward_model/accuracy']:.2f} on the rankings of this step"
            )
    trainer.save(folder)
    return trainer.reward_model, steps


def _measured(reward_model: RewardModel, config: RlhfConfig) -> dict[str, Any] | None:
    rankings = measured_on(config.folder)
    if not any(len(ranking.order) > 1 for ranking in rankings):
        return None
    return evaluate_rankings(reward_model, rankings).to_json()
