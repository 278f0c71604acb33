"""How a configuration's [train] or [ppo] section becomes the settings of a trainer."""

from __future__ import annotations

from typing import Any

from groundrule.algorithms.presets import PRESETS
from groundrule.backends.trainers import GroupSettings
from groundrule.models.lora import LoraSettings
from groundrule.recipes.config import TrainingConfig
from groundrule.training.lora_trainer import TrainerSettings


def settings_of(config: TrainingConfig) -> GroupSettings:
    """Those of PPO where there is a section [ppo], else of the preset with what [train] changes in it."""
    return config.ppo or _of_groups(config)


def _of_groups(config: TrainingConfig) -> TrainerSettings:
    train, preset = config.train, PRESETS[config.train.preset]
    loss: dict[str, Any] = {
        "fixed_length": config.policy.max_tokens,  # Dr. GRPO divides by the longest answer that is allowed.
        "importance": train.importance if train.max_staleness else "none",
        "importance_cap": train.importance_cap,
    }
    if train.kl_coef is not None:
        loss["kl_coef"] = train.kl_coef
    return TrainerSettings(
        learning_rate=train.learning_rate,
        advantage=train.advantage or preset.advantage,
        whiten=preset.whiten,
        truncated=train.truncated,
        tie_band=train.tie_band,
        policy_loss=preset.loss.model_copy(update=loss),
        epochs=train.epochs,
        lora=LoraSettings(rank=train.lora_rank, alpha=2 * train.lora_rank),
    )
