"""Settings of ART's `backend.train(...)`, turned into ours; what we cannot honour is refused by name."""

from __future__ import annotations

import difflib
from typing import Any

from pydantic import ValidationError

from groundrule.errors import ConfigError
from groundrule.training.lora_trainer import TrainerSettings

_NEUTRAL: dict[str, Any] = {
    "loss_fn_config": None,
    "adam_params": None,
    "kl_penalty_reference_step": None,
    "kl_ref_adapter_path": None,
    "advantage_balance": 0.0,
    "max_negative_advantage_importance_sampling_weight": None,
    "mask_prob_ratio": False,
    "kimi_k2_tau": None,
    "num_trajectories_learning_rate_multiplier_power": 0.0,
    "plot_tensors": False,
}
"""Accepted at these values, which change nothing; refused at any other."""

_IGNORED = frozenset(
    {
        "precalculate_logprobs",
        "logprob_calculation_chunk_size",
        "packed_sequence_length",
        "scale_learning_rate_by_reward_std_dev",
        "save_checkpoint",
        "verbose",
        "grad_accumulation_sequences",
    }
)
"""How the work is cut into pieces, which never changes the result here."""


def trainer_settings(base: TrainerSettings, given: dict[str, Any]) -> TrainerSettings:
    """The backend's settings with those of one `train` call. Raises `ConfigError` for what is not supported."""
    given = dict(given)
    changes: dict[str, Any] = {}
    loss: dict[str, Any] = {}
    for name, neutral in _NEUTRAL.items():
        if name in given and given.pop(name) != neutral:
            raise ConfigError(f"{name} is not supported by LocalBackend; leave it out (or at {neutral!r})")
    for name in _IGNORED:
        given.pop(name, None)
    if "loss_fn" in given:
        loss["loss"] = _one_of("loss_fn", given.pop("loss_fn"), {"ppo": "clipped", "cispo": "cispo"})
    if given.pop("ppo", False):
        loss["loss"] = "clipped"
    if "importance_sampling_level" in given:
        level = _one_of(
            "importance_sampling_level",
            given.pop("importance_sampling_level"),
            {"token": "", "sequence": "gspo"},
        )
        if level:
            loss["loss"] = level
    for theirs, ours in {
        "epsilon": "clip_low",
        "epsilon_high": "clip_high",
        "kl_penalty_coef": "kl_coef",
    }.items():
        if (value := given.pop(theirs, None)) is not None:
            loss[ours] = value
    if (cap := given.pop("truncated_importance_sampling", None)) is not None:
        loss["importance"], loss["importance_cap"] = "token", cap
    scaled = [given.pop(name, True) for name in ("scale_rewards", "normalize_advantages")]
    if not all(scaled):
        changes["advantage"] = "mean_only"
    for name in ("learning_rate", "allow_training_without_logprobs", "advantage", "epochs"):
        if name in given:
            changes[name] = given.pop(name)
    if given:
        name = next(iter(given))
        near = difflib.get_close_matches(name, [*_NEUTRAL, *_IGNORED, *TrainerSettings.model_fields], n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise ConfigError(f"train() got an unknown setting {name!r}{hint}")
    policy_loss = {**base.policy_loss.model_dump(), **loss}
    try:
        return TrainerSettings.model_validate({**base.model_dump(), **changes, "policy_loss": policy_loss})
    except ValidationError as error:
        fault = error.errors()[0]
        raise ConfigError(f"train() got {fault['loc'][-1]}={fault['input']!r}: {fault['msg']}") from error


def _one_of(name: str, value: Any, choices: dict[str, str]) -> str:
    if value not in choices:
        raise ConfigError(f"{name} is {value!r}; LocalBackend has {', '.join(map(repr, choices))}")
    return choices[value]
