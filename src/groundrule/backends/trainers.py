"""Which trainer stands behind a backend: its settings say so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groundrule.backends.art_settings import trainer_settings
from groundrule.data.group import TrajectoryGroup
from groundrule.errors import ConfigError
from groundrule.models.load import LanguageModel, load_model
from groundrule.training.lora_trainer import LoraTrainer, TrainerSettings
from groundrule.training.ppo import PpoTrainer
from groundrule.training.ppo_settings import PpoSettings

GroupSettings = TrainerSettings | PpoSettings
GroupTrainer = LoraTrainer | PpoTrainer
"""Whatever learns from scored groups."""


def trainer_of(model: LanguageModel, settings: GroupSettings, *, seed: int) -> GroupTrainer:
    """GRPO and its kin for `TrainerSettings`, PPO with a critic for `PpoSettings`.

    With `PpoSettings.apart` reference and critic are loaded as models of their own.
    """
    if isinstance(settings, TrainerSettings):
        return LoraTrainer(model, settings, seed=seed)
    if not settings.apart:
        return PpoTrainer(model, settings, seed=seed)
    reference, critic = (load_model(model.name, device=str(model.device)) for _ in range(2))
    return PpoTrainer(model, settings, reference=reference, critic=critic, seed=seed)


def take_step(
    trainer: GroupTrainer, groups: Sequence[TrajectoryGroup], base: GroupSettings, given: dict[str, Any]
) -> dict[str, float]:
    """One step, with the settings of one `backend.train` call in place of the backend's own.

    Raises `ConfigError` for a setting that the trainer does not have.
    """
    if isinstance(trainer, LoraTrainer) and isinstance(base, TrainerSettings):
        return trainer.step(groups, trainer_settings(base, given))
    if given:
        raise ConfigError(
            f"train() got {next(iter(given))!r}, but PPO keeps its settings from the first step to the last; give "
            "them to the backend: LocalBackend(settings=PpoSettings(...))"
        )
    return trainer.step(groups)


def shares_base(settings: GroupSettings) -> bool:
    """Whether judges may stand on the weights of the policy that is trained."""
    return not (isinstance(settings, PpoSettings) and settings.apart)
