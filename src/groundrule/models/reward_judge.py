"""The judge `local/reward-model/FOLDER`: a trained reward model by its folder."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

from groundrule._util.files import sha256_of
from groundrule._util.folders import MANIFEST
from groundrule.errors import CheckpointError, ConfigError
from groundrule.models.pool import for_judging
from groundrule.models.reward_files import load_reward_model, read_facts
from groundrule.models.reward_model import RewardModel
from groundrule.rewards.learned import LearnedReward

_lock = threading.Lock()
_loaded: dict[tuple[str, str], RewardModel] = {}
"""By base model and manifest: a judge named again is not put on its base again."""


def reward_model_judge(folder: str, params: dict[str, Any] | None = None) -> LearnedReward:
    """The judge behind the name; the one parameter is `base_model`, where the base has another name here."""
    if not folder:
        raise ConfigError("'local/reward-model' names no folder; write 'local/reward-model/FOLDER'")
    given = dict(params or {})
    base = given.pop("base_model", None)
    if given or not (base is None or isinstance(base, str)):
        wrong = next(iter(given), "base_model")
        raise ConfigError(
            f"local/reward-model got {wrong}={(params or {})[wrong]!r}; its only parameter is base_model, the name or "
            "folder of the model that it was trained on"
        )
    try:
        return LearnedReward(shared_reward_model(Path(folder), base))
    except CheckpointError as error:
        raise ConfigError(f"'local/reward-model/{folder}' is not a judge: {error}") from error


def shared_reward_model(folder: Path, base: str | None) -> RewardModel:
    """The one that every judge of this process by that name stands on."""
    with _lock:
        facts = read_facts(folder)
        name = base or facts.base_model
        key = (name, sha256_of(folder / MANIFEST))
        found = _loaded.get(key)
        if found is None or (facts.lora is not None and found.model is not for_judging(name)):
            found = _loaded[key] = load_reward_model(folder, base_model=name)
        return found
