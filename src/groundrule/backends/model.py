"""Model and TrainableModel: what a program holds while a backend serves and trains it."""

from __future__ import annotations

import contextlib
import contextvars
import json
from collections.abc import Iterable
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

from groundrule._util import jsonl
from groundrule._util.files import write_atomic
from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Policy
from groundrule.data.records import append_group
from groundrule.data.trajectory import Trajectory
from groundrule.errors import ConfigError, RunError

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from groundrule.backends.base import Backend, TrainResult

slot_of_rollout: contextvars.ContextVar[int | None] = contextvars.ContextVar("groundrule_slot", default=None)
"""Which slot of a lockstep gather the running rollout has; travels to the local endpoint with each request."""


class TrainConfig(BaseModel):
    """Settings of one `model.train` call.

    The learning rate suits the small default adapter; ART's 5e-6 moves nothing visible with it.
    """

    model_config = ConfigDict(frozen=True)

    learning_rate: float = Field(default=1e-4, gt=0)
    kl_penalty_coef: float = Field(default=0.0, ge=0)
    """Weight of the KL term to the base model (adapter off)."""
    grad_accumulation_sequences: int | None = None
    """Accepted for compatibility: a step is one exact optimizer step, however it is split."""


class Model(BaseModel):
    """A model that is only asked, not trained: any OpenAI-compatible endpoint."""

    model_config = ConfigDict(extra="allow")

    name: str
    project: str
    entity: str | None = None
    id: str | None = None
    config: Any = None
    inference_api_key: str | None = None
    inference_base_url: str | None = None
    inference_model_name: str | None = None
    base_path: str | None = None
    """Where runs are kept; None: the backend's choice (`./runs`)."""
    report_metrics: list[str] | None = None
    system_prompt: str | None = None
    """What agents are given in place of the scenarios' own system prompt; None: that."""

    trainable: Literal[False, True] = False
    _client: Any = PrivateAttr(default=None)
    _backend: Any = PrivateAttr(default=None)

    @property
    def folder(self) -> Path:
        """This model's run folder."""
        root = self.base_path or (str(self._backend.path) if self._backend is not None else "runs")
        return Path(root) / self.project / self.name

    async def register(self, backend: Backend) -> None:
        """Let a backend serve this model."""
        await backend.register(self)

    def attach(self, backend: Backend) -> None:
        """Remember who serves this model; backends call it."""
        self._backend = backend
        self._client = None  # It would go on asking the endpoint of the backend before.

    def openai_client(self) -> AsyncOpenAI:
        """An OpenAI client for this model; one per model, kept."""
        if self._client is None:
            if not self.inference_base_url or not self.inference_api_key:
                raise ConfigError(
                    f"model {self.name!r} has no endpoint: `await model.register(backend)` first, "
                    "or give inference_base_url and inference_api_key"
                )
            self._client = _client(self.inference_base_url, self.inference_api_key)
        return self._client  # type: ignore[no-any-return]

    async def close_client(self) -> None:
        """Close the connections to the endpoint; `openai_client()` opens new ones."""
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(RuntimeError):  # They went with the event loop that opened them.
                await client.close()

    def get_inference_name(self, step: int | None = None) -> str:
        """The model name to put into requests."""
        name = self.inference_model_name or self.name
        return name if step is None else f"{name}@{step}"

    def policy(self, *, version: int = 0) -> Policy:
        """The endpoint as the plain data that rollouts take."""
        return Policy(
            base_url=self.inference_base_url or "",
            model=self.get_inference_name(),
            version=version,
            api_key=self.inference_api_key or "",
            system_prompt=self.system_prompt,
        )

    async def log(
        self,
        trajectories: Iterable[Trajectory | TrajectoryGroup | BaseException] | None = None,
        split: str = "val",
        *,
        metrics: dict[str, float] | None = None,
        step: int | None = None,
    ) -> None:
        """Keep trajectories and metrics of any split in the run folder, under the current step."""
        at = await self.get_step() if step is None else step
        groups = [_as_group(t) for t in trajectories or [] if not isinstance(t, BaseException)]
        rewards = [r for g in groups for r in g.rewards if r is not None]
        found = {f"{split}/reward": fmean(rewards)} if rewards else {}
        for group in groups:
            append_group(self.folder / "logged" / f"{split}-step-{at:06d}.jsonl", group)
        record = {"step": at, "split": split, **found, **(metrics or {})}
        jsonl.append(self.folder / "logged" / "metrics.jsonl", record)

    def logged_metrics(self) -> list[dict[str, Any]]:
        """The metrics lines that `log` wrote, oldest first."""
        path = self.folder / "logged" / "metrics.jsonl"
        return [record for _, record in jsonl.read(path)] if path.exists() else []

    async def get_step(self) -> int:
        """Steps completed so far; 0 for a model that is not trained."""
        return 0

    def read_state(self) -> dict[str, Any] | None:
        """What the program kept with `overwrite_state`; None when there is nothing."""
        path = self.folder / "program-state.json"
        try:
            state: dict[str, Any] = json.loads(path.read_text())
        except FileNotFoundError:
            return None
        except ValueError as error:
            raise RunError(f"{path} is not readable JSON ({error}); restore or delete it") from error
        return state

    def overwrite_state(self, state: dict[str, Any]) -> None:
        """Keep a program's own state (a cursor, a note) with the run."""
        write_atomic(self.folder / "program-state.json", json.dumps(state, indent=2) + "\n")

    def merge_state(self, state: dict[str, Any]) -> dict[str, Any]:
        """Update single keys of the kept state."""
        merged = {**(self.read_state() or {}), **state}
        self.overwrite_state(merged)
        return merged


class TrainableModel(Model):
    """A model whose adapter is trained by its backend.

    model = TrainableModel(name="support-1", project="support", base_model="smollm2-135m")
    await model.register(LocalBackend())
    """

    base_model: str
    run_id: str | None = None
    trainable: Literal[False, True] = True

    _internal_config: dict[str, Any] = PrivateAttr(default_factory=dict)

    def __init__(self, *, _internal_config: dict[str, Any] | None = None, **fields: Any) -> None:
        super().__init__(**fields)
        self._internal_config = _internal_config or {}

    async def train(
        self,
        trajectory_groups: Iterable[TrajectoryGroup],
        config: TrainConfig | None = None,
        _config: dict[str, Any] | None = None,
        verbose: bool = False,
    ) -> TrainResult:
        """One step of GRPO on scored groups; the endpoint answers with the new weights afterwards."""
        chosen = config or TrainConfig()
        return await self._registered().train(
            self,
            trajectory_groups,
            learning_rate=chosen.learning_rate,
            kl_penalty_coef=chosen.kl_penalty_coef,
            verbose=verbose,
            **(_config or {}),
        )

    async def get_step(self) -> int:
        """Steps completed so far, counting from 1; 0 before the first."""
        return await self._registered().get_step(self)

    async def delete_checkpoints(self, best_checkpoint_metric: str = "val/reward") -> None:
        """Keep the latest checkpoints and the best one by this metric. A metric never logged deletes nothing."""
        await self._registered().delete_checkpoints(self, best_checkpoint_metric)

    def _registered(self) -> Backend:
        if self._backend is None:
            raise ConfigError(
                f"model {self.name!r} has no backend: `await model.register(LocalBackend())` first"
            )
        return self._backend  # type: ignore[no-any-return]


def _as_group(item: Trajectory | TrajectoryGroup) -> TrajectoryGroup:
    return item if isinstance(item, TrajectoryGroup) else TrajectoryGroup([item])


def _client(base_url: str, api_key: str) -> AsyncOpenAI:
    """A client without retries or short timeouts, that says which slot a request belongs to."""
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    async def mark(request: Any) -> None:
        slot = slot_of_rollout.get()
        if slot is not None:
            request.headers["x-groundrule-slot"] = str(slot)

    http = DefaultAsyncHttpxClient(timeout=1200.0, event_hooks={"request": [mark]}, trust_env=False)
    return AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0, http_client=http)
