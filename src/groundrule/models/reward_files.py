"""Reward models on disk: a folder that is complete or not there. Nothing is pickled.

Files: `head.safetensors`, `reward_model.json` (base model, shapes, scale, how it was trained), `manifest.json` with the
sha256 of each file; and either `adapter_model.safetensors` and `adapter_config.json` as peft writes them, or the folder
`model/` with all weights as transformers writes them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from groundrule._util.folders import MANIFEST, check_manifest, replacing_folder, write_manifest
from groundrule.errors import CheckpointError, ConfigError
from groundrule.models.adapter_files import ADAPTER, ADAPTER_CONFIG
from groundrule.models.load import LanguageModel, load_model
from groundrule.models.lora import LoraSettings, adapter_state, load_adapter_state
from groundrule.models.pool import for_judging
from groundrule.models.quiet import quiet
from groundrule.models.reward_model import RewardModel, new_reward_model, whole_reward_model
from groundrule.rewards.learned import ValueScale

HEAD = "head.safetensors"
FACTS = "reward_model.json"
MODEL = "model"
ALWAYS = (HEAD, FACTS)


class RewardModelFacts(BaseModel):
    """What `reward_model.json` says."""

    model_config = ConfigDict(extra="forbid")

    format: int = Field(default=1, ge=1, le=1)
    base_model: str
    lora: LoraSettings | None
    """None: all weights were trained, and the folder holds them."""
    width: int
    """Inputs of the head, which is linear, without a bias, on the last hidden state of the last token."""
    scale: ValueScale
    training: dict[str, Any] = Field(default_factory=dict)
    """Whatever the trainer says about itself."""


def save_reward_model(
    reward_model: RewardModel, folder: Path, *, training: dict[str, Any] | None = None
) -> None:
    """Write the folder and move it into place in one step; a reward model that is there already is replaced."""
    from safetensors.torch import save_file

    if folder.exists() and not (folder / FACTS).exists():
        raise ConfigError(f"{folder} exists and is no reward model; choose another folder, or remove it")
    facts = RewardModelFacts(
        base_model=reward_model.model.name,
        lora=reward_model.lora,
        width=reward_model.head.in_features,
        scale=reward_model.scale,
        training=training or {},
    )
    with replacing_folder(folder) as scratch:
        with reward_model.model.lock:
            names = _write_weights(reward_model, scratch)
            save_file({"weight": reward_model.head.weight.detach().cpu().contiguous()}, scratch / HEAD)
        (scratch / FACTS).write_text(facts.model_dump_json(indent=2) + "\n")
        write_manifest(scratch, (*ALWAYS, *names))


def _write_weights(reward_model: RewardModel, scratch: Path) -> list[str]:
    """The names of the files."""
    from safetensors.torch import save_file

    model = reward_model.model
    if reward_model.adapter is not None:
        save_file(adapter_state(model, reward_model.adapter), scratch / ADAPTER)
        model.network.peft_config[reward_model.adapter].save_pretrained(str(scratch))
        return [ADAPTER, ADAPTER_CONFIG]
    with quiet():
        model.network.save_pretrained(scratch / MODEL)
        model.tokenizer.save_pretrained(scratch / MODEL)
    return sorted(p.relative_to(scratch).as_posix() for p in (scratch / MODEL).rglob("*") if p.is_file())


def load_reward_model(
    folder: Path, *, model: LanguageModel | None = None, base_model: str | None = None
) -> RewardModel:
    """Put the folder's adapter, under a name of its own, on a base that may be in use by others.

    `base_model` names the base where it has another name here than where it was trained; `model` is one already in
    memory. A folder that holds all weights needs neither: it is loaded as a model of its own. Raises `CheckpointError`
    when a file is missing, cut or changed, or the base is another.
    """
    from safetensors.torch import load_file

    facts = read_facts(folder)
    if facts.lora is None:
        return _load_whole(folder, facts)
    base = model or for_judging(base_model or facts.base_model)
    if base.name != (base_model or facts.base_model):
        raise CheckpointError(
            f"{folder} was trained on {facts.base_model!r}, the model in memory is {base.name!r}; load the same "
            "base model, or say with base_model that it is the same under another name"
        )
    made = new_reward_model(base, facts.lora)
    weight = load_file(folder / HEAD)["weight"]
    if weight.shape != made.head.weight.shape:
        raise CheckpointError(
            f"the head in {folder} reads {facts.width} numbers, {base.name!r} gives {made.head.in_features}; "
            f"load its own base model, {facts.base_model!r}"
        )
    assert made.adapter is not None
    try:
        load_adapter_state(base, load_file(folder / ADAPTER), made.adapter)
    except ConfigError as error:
        raise CheckpointError(f"{folder} does not fit {base.name!r}: {error}") from error
    with torch.no_grad():
        made.head.weight.copy_(weight)
    made.head.requires_grad_(False)
    made.scale = facts.scale
    return made


def _load_whole(folder: Path, facts: RewardModelFacts) -> RewardModel:
    from safetensors.torch import load_file

    made = whole_reward_model(load_model(str(folder / MODEL), dtype=torch.float32))
    with torch.no_grad():
        made.head.weight.copy_(load_file(folder / HEAD)["weight"])
    made.head.requires_grad_(False)
    made.scale = facts.scale
    return made


def read_facts(folder: Path) -> RewardModelFacts:
    """What the folder says about itself, after every file was checked against the manifest."""
    _check(folder, ALWAYS)
    try:
        facts = RewardModelFacts.model_validate_json((folder / FACTS).read_text())
    except ValidationError as error:
        fault = error.errors()[0]
        place = ".".join(map(str, fault["loc"]))
        raise CheckpointError(
            f"{folder / FACTS}, {place}: {fault['msg']}; it was written by another version"
        ) from error
    if facts.lora is not None:
        _check(folder, (ADAPTER, ADAPTER_CONFIG))
    return facts


def _check(folder: Path, names: Sequence[str]) -> None:
    check_manifest(folder, names, kind="reward model", remedy="; train or copy it again", manifest=MANIFEST)
