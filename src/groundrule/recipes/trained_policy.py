"""A policy behind an endpoint for as long as it is asked: a model as it began, or with the adapter of a checkpoint."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from groundrule._util.aio import on_model_thread
from groundrule.backends.local import LocalBackend
from groundrule.backends.model import TrainableModel
from groundrule.models.adapter_files import ADAPTER
from groundrule.models.lora import LoraSettings, load_adapter_state
from groundrule.recipes.config import KeptSection, PolicyConfig
from groundrule.training.lora_trainer import TrainerSettings


@dataclass(frozen=True)
class Trained:
    """A policy that was trained: its checkpoint, and the shape of its adapter."""

    checkpoint: Path
    lora: LoraSettings


@asynccontextmanager
async def served_policy(
    policy: PolicyConfig, named: KeptSection, trained: Trained | None = None, *, seed: int
) -> AsyncIterator[tuple[LocalBackend, TrainableModel]]:
    """The backend and the model; what it writes goes to a folder that is removed in the end."""
    backend = LocalBackend(
        device=policy.device,
        settings=TrainerSettings(lora=trained.lora) if trained else TrainerSettings(),
        seed=seed,
    )
    model = TrainableModel(name=named.name, project=named.project, base_model=policy.base_model)
    with tempfile.TemporaryDirectory(prefix="groundrule-") as scratch:
        try:
            await backend.register_at(model, Path(scratch) / "run", {})
            if trained:
                await on_model_thread(_put_on, backend, model, trained.checkpoint)
            yield backend, model
        finally:
            await backend.close()


def _put_on(backend: LocalBackend, model: TrainableModel, checkpoint: Path) -> None:
    from safetensors.torch import load_file

    served = backend.served(model)
    with served.language_model.lock:
        load_adapter_state(served.language_model, load_file(checkpoint / ADAPTER))
    served.engine.publish(1)
