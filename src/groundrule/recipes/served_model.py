"""What `groundrule serve` is given: a model, or a run or checkpoint folder with the adapter that was trained."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groundrule._util.folders import MANIFEST
from groundrule.data.runs import Run
from groundrule.errors import CheckpointError, ModelError
from groundrule.models.adapter_files import ADAPTER_CONFIG, put_on
from groundrule.models.load import LanguageModel, load_model
from groundrule.training.checkpoints import TRAINER, newest_of, verify_checkpoint


@dataclass(frozen=True)
class ServedModel:
    """A model ready to be served, and the name it goes by."""

    model: LanguageModel
    name: str
    version: int = 0
    """The training step that its weights come from."""


def load_served(target: str, *, device: str | None = None) -> ServedModel:
    """The model that `target` names; an adapter is put on its base model."""
    folder = Path(target)
    if (folder / "state.json").exists():
        checkpoint, name = _newest(folder), folder.resolve().name
    elif (folder / ADAPTER_CONFIG).exists():
        checkpoint, name = folder, _name_of_checkpoint(folder.resolve())
    else:
        name = folder.resolve().name if folder.is_dir() else target
        return ServedModel(load_model(target, device=device), name)
    base, step = _described(checkpoint)
    model = load_model(base, device=device)
    put_on(model, checkpoint)
    return ServedModel(model, name, step)


def _newest(run_folder: Path) -> Path:
    """The last complete checkpoint of a run; the run itself may go on meanwhile."""
    run = Run.open(run_folder, read_only=True)
    checkpoint = newest_of(run)
    if checkpoint is None:
        raise CheckpointError(
            f"{run_folder} has no complete checkpoint yet; train a step first, or serve its base model"
        )
    return checkpoint


def _name_of_checkpoint(folder: Path) -> str:
    """A checkpoint inside a run goes by the run's name."""
    return folder.parent.parent.name if folder.parent.name == "checkpoints" else folder.name


def _described(checkpoint: Path) -> tuple[str, int]:
    """The base model and the step, as our own checkpoints say, or the base model that peft noted."""
    if (checkpoint / MANIFEST).exists():
        verify_checkpoint(checkpoint)
        facts: dict[str, Any] = json.loads((checkpoint / TRAINER).read_text("utf-8"))
        return str(facts["base_model"]), int(facts["step"])
    base = json.loads((checkpoint / ADAPTER_CONFIG).read_text("utf-8")).get("base_model_name_or_path")
    if not base:
        raise ModelError(
            f"{checkpoint / ADAPTER_CONFIG} names no base_model_name_or_path; write it there, or serve a run folder"
        )
    return str(base), 0
