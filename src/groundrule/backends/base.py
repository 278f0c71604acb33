"""What every backend offers: serve a model, train it, say how far it is, stop."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from groundrule.data.group import TrajectoryGroup

if TYPE_CHECKING:
    from groundrule.backends.model import Model, TrainableModel


@dataclass(frozen=True)
class TrainResult:
    """A finished step: its number, its metrics, and where its checkpoint is."""

    step: int
    metrics: dict[str, float | None] = field(default_factory=dict)
    checkpoint_path: str | None = None


class Backend(Protocol):
    """One learner and one server."""

    path: Path

    async def register(self, model: Model) -> None: ...

    async def train(
        self, model: TrainableModel, trajectory_groups: Iterable[TrajectoryGroup], **settings: Any
    ) -> TrainResult: ...

    async def get_step(self, model: TrainableModel) -> int: ...

    async def delete_checkpoints(self, model: TrainableModel, best_checkpoint_metric: str) -> None: ...

    async def close(self) -> None: ...
