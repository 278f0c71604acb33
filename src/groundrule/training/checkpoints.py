"""Checkpoints: a folder is complete or it is not there, and a cut one is never taken for the newest.

Files: `adapter_model.safetensors` and `adapter_config.json` as peft writes them, `optimizer.safetensors`,
`trainer.json`, and `manifest.json` with the sha256 of each. `more_state.safetensors` is there for trainers that hold
more than an adapter. Nothing is pickled.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from pydantic import BaseModel

from groundrule._util.folders import check_manifest, replacing_folder, write_manifest
from groundrule.data.runs import Run
from groundrule.errors import CheckpointError
from groundrule.models.adapter_files import ADAPTER, ADAPTER_CONFIG
from groundrule.models.load import LanguageModel
from groundrule.models.lora import POLICY, adapter_state, load_adapter_state

logger = logging.getLogger(__name__)

OPTIMIZER = "optimizer.safetensors"
TRAINER = "trainer.json"
MORE_STATE = "more_state.safetensors"
FILES = (ADAPTER, ADAPTER_CONFIG, OPTIMIZER, TRAINER)
"""What a complete checkpoint holds beside its manifest."""


class AdapterTrainer(Protocol):
    """Whatever trains the policy's adapter: by reward, by preferences or by examples."""

    @property
    def model(self) -> LanguageModel: ...
    @property
    def settings(self) -> BaseModel: ...
    @property
    def parameters(self) -> dict[str, torch.nn.Parameter]: ...
    @property
    def optimizer(self) -> torch.optim.Optimizer: ...


@runtime_checkable
class HasMoreState(Protocol):
    """A trainer of something beside the adapter, such as a critic."""

    def more_state(self) -> dict[str, torch.Tensor]: ...
    def load_more_state(self, state: dict[str, torch.Tensor]) -> None: ...


def save_checkpoint(
    trainer: AdapterTrainer, folder: Path, *, step: int, extra: dict[str, Any] | None = None
) -> None:
    """Write everything that a resumed run needs, then move it into place in one step.

    An existing folder of the same name is replaced.
    """
    from safetensors.torch import save_file

    facts = {
        "step": step,
        "base_model": trainer.model.name,
        "settings": trainer.settings.model_dump(mode="json"),
    }
    names: tuple[str, ...] = FILES
    with replacing_folder(folder) as scratch:
        save_file(adapter_state(trainer.model), scratch / ADAPTER)
        trainer.model.network.peft_config[POLICY].save_pretrained(str(scratch))
        save_file(optimizer_tensors(trainer.parameters, trainer.optimizer), scratch / OPTIMIZER)
        if isinstance(trainer, HasMoreState):
            save_file(trainer.more_state(), scratch / MORE_STATE)
            names = (*FILES, MORE_STATE)
        (scratch / TRAINER).write_text(json.dumps({**facts, "extra": extra or {}}, indent=2) + "\n")
        write_manifest(scratch, names, step=step)


def load_checkpoint(trainer: AdapterTrainer, folder: Path) -> dict[str, Any]:
    """Put a checkpoint's adapter and optimizer into the trainer; returns what `trainer.json` says.

    Raises `CheckpointError` when a file is missing, cut or changed, or belongs to another model.
    """
    from safetensors.torch import load_file

    verify_checkpoint(folder)
    facts: dict[str, Any] = json.loads((folder / TRAINER).read_text())
    if facts["base_model"] != trainer.model.name:
        raise CheckpointError(
            f"{folder} was trained on {facts['base_model']!r}, the model in memory is {trainer.model.name!r}; "
            "load the same base model"
        )
    if isinstance(trainer, HasMoreState) and not (folder / MORE_STATE).exists():
        raise CheckpointError(
            f"{folder} holds an adapter and no {MORE_STATE}: it is of another kind of training; "
            "load it as a model to start from, or take a checkpoint of this kind"
        )
    load_adapter_state(trainer.model, load_file(folder / ADAPTER))
    restore_optimizer(trainer.parameters, trainer.optimizer, load_file(folder / OPTIMIZER))
    if isinstance(trainer, HasMoreState):
        trainer.load_more_state(load_file(folder / MORE_STATE))
    return facts


def verify_checkpoint(folder: Path) -> None:
    """Raise `CheckpointError` unless every file of the manifest is there with its hash."""
    check_manifest(folder, FILES, kind="checkpoint")


def latest_checkpoint(folders: list[Path]) -> Path | None:
    """The newest complete one of these folders, given oldest first; damaged ones are reported and passed over."""
    for folder in reversed(folders):
        try:
            verify_checkpoint(folder)
        except CheckpointError as error:
            logger.warning("%s; an older checkpoint is used", error)
        else:
            return folder
    return None


def newest_of(run: Run) -> Path | None:
    """The newest complete checkpoint of a run's complete steps."""
    return latest_checkpoint([run.checkpoint_folder(step) for step in run.checkpoint_steps()])


def optimizer_tensors(
    parameters: Mapping[str, torch.Tensor], optimizer: torch.optim.Optimizer
) -> dict[str, torch.Tensor]:
    """What the optimizer keeps of each parameter, as `name::key`."""
    tensors = {}
    for name, parameter in parameters.items():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"{name}::{key}"] = torch.as_tensor(value).detach().cpu().clone().contiguous()
    return tensors


def restore_optimizer(
    parameters: Mapping[str, torch.Tensor],
    optimizer: torch.optim.Optimizer,
    tensors: dict[str, torch.Tensor],
) -> None:
    """Put back what `optimizer_tensors` gave, in place of all that the optimizer keeps."""
    state: dict[torch.Tensor, dict[str, torch.Tensor]] = {}
    for label, value in tensors.items():
        name, _, key = label.rpartition("::")
        if name not in parameters:
            raise CheckpointError(
                f"the optimizer state names {name!r}, which the adapter in memory does not have"
            )
        parameter = parameters[name]
        # The step counter stays on the CPU, as torch keeps it.
        state.setdefault(parameter, {})[key] = value if key == "step" else value.to(parameter.device)
    optimizer.state.clear()
    for parameter, values in state.items():
        optimizer.state[parameter] = values
