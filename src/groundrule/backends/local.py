"""LocalBackend: the policy is served and trained in this process, on a CPU, a CUDA or an MPS device."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from groundrule._util.aio import on_model_thread
from groundrule._util.seed import derive
from groundrule.backends.base import TrainResult
from groundrule.backends.model import Model, TrainableModel, slot_of_rollout
from groundrule.backends.trainers import GroupSettings, GroupTrainer, shares_base, take_step, trainer_of
from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Policy, Rollout
from groundrule.data.runs import Run
from groundrule.data.scenario import Scenario
from groundrule.data.trajectory import Trajectory
from groundrule.errors import CheckpointError, ConfigError
from groundrule.inference.app import Endpoint
from groundrule.inference.engine import Engine
from groundrule.inference.server import LocalServer
from groundrule.models import pool
from groundrule.models.load import LanguageModel
from groundrule.training.checkpoints import load_checkpoint, newest_of, save_checkpoint
from groundrule.training.lora_trainer import TrainerSettings

logger = logging.getLogger(__name__)


@dataclass
class Served:
    """Everything behind one registered model."""

    model: TrainableModel
    language_model: LanguageModel
    engine: Engine
    server: LocalServer
    run: Run
    trainer: GroupTrainer


class LocalBackend:
    """Serves and trains models in this process. Runs are kept under `path`, by default `./runs`.

    `in_process` and `gpu_cost_per_hour_usd` are accepted for programs written for ART.
    """

    def __init__(
        self,
        *,
        in_process: bool = True,
        path: str | Path | None = None,
        gpu_cost_per_hour_usd: float | None = None,
        device: str | None = None,
        settings: GroupSettings | None = None,
        seed: int = 0,
    ) -> None:
        self.path = Path(path or "runs")
        self.device = device
        self.settings: GroupSettings = settings or TrainerSettings()
        self.seed = seed
        self._served: dict[tuple[str, str], Served] = {}

    async def register(self, model: Model) -> None:
        """Load the model, resume its run if there is one, and answer on 127.0.0.1."""
        model.attach(self)
        await self.register_at(model, model.folder, {"base_model": getattr(model, "base_model", None)})

    async def register_at(self, model: Model, folder: Path, config: dict[str, Any]) -> None:
        """The same, with a run folder of the caller's choice and the configuration that is kept in it."""
        if (model.project, model.name) in self._served:
            raise ConfigError(f"model {model.project}/{model.name} is already registered with this backend")
        model.attach(self)
        self._served[model.project, model.name] = await on_model_thread(self._start, model, folder, config)

    def _start(self, model: Model, folder: Path, config: dict[str, Any]) -> Served:
        if not isinstance(model, TrainableModel):
            raise ConfigError(
                f"{model.name!r} is a Model, which is only asked; LocalBackend takes a TrainableModel"
            )
        with ExitStack() as undo:
            language_model = pool.for_training(
                model.base_model, self.device, shared=shares_base(self.settings)
            )
            undo.callback(pool.release, language_model)
            # After the model: a base model that cannot be loaded leaves no run behind.
            run = Run.open_or_create(folder, config)
            undo.callback(run.close)
            trainer = trainer_of(language_model, self.settings, seed=derive(self.seed, "adapter"))
            self._resume(trainer, run)
            engine = Engine(language_model, seed=derive(self.seed, "sampling"), version=run.step)
            undo.callback(engine.close)
            key = secrets.token_urlsafe(24)
            names = lambda: [model.get_inference_name(), model.get_inference_name(engine.version)]  # noqa: E731
            server = LocalServer(Endpoint(engine, names, api_key=key).app())
            undo.pop_all()
        model.inference_base_url, model.inference_api_key = server.base_url, key
        model.inference_model_name = model.inference_model_name or model.name
        return Served(model, language_model, engine, server, run, trainer)

    def _resume(self, trainer: GroupTrainer, run: Run) -> None:
        """Load the checkpoint of the run's last complete step; an older one when that is damaged."""
        if run.step == 0:
            return
        folder = newest_of(run)
        if folder is None:
            raise CheckpointError(
                f"{run.folder} is at step {run.step} but none of its checkpoints is complete; start a new run"
            )
        step = int(load_checkpoint(trainer, folder)["step"])
        if step < run.step:
            run.roll_back(step)

    async def train(
        self,
        model: TrainableModel,
        trajectory_groups: Iterable[TrajectoryGroup],
        *,
        metrics: Mapping[str, float | None] | None = None,
        **settings: Any,
    ) -> TrainResult:
        """One atomic step: update, checkpoint, record. The endpoint answers with the new weights afterwards.

        `metrics` go into the step's line beside the trainer's own. A step without signal leaves the
        weights as they are and still counts.
        """
        served = self.served(model)
        groups = list(trajectory_groups)
        return await on_model_thread(self._train, served, groups, settings, dict(metrics or {}))

    def _train(
        self,
        served: Served,
        groups: list[TrajectoryGroup],
        settings: dict[str, Any],
        more: dict[str, float | None],
    ) -> TrainResult:
        run, trainer = served.run, served.trainer
        step = run.next_step
        metrics = {**more, **take_step(trainer, groups, self.settings, settings)}
        folder = run.checkpoint_folder(step)
        save_checkpoint(trainer, folder, step=step)
        run.record_step(step, groups, metrics)
        served.engine.publish(step)
        return TrainResult(step=step, metrics=metrics, checkpoint_path=str(folder))

    @contextmanager
    def lockstep(self, model: TrainableModel, rollout: Rollout, policy: Policy, count: int) -> Iterator[Any]:
        """Inside, rollouts made by the yielded function are decoded in fixed batches: same run, same bytes.

        All `count` rollouts must be started together (a gather without a concurrency limit does it).
        """
        engine = self.served(model).engine
        numbers = iter(range(count))
        with engine.lockstep(count) as close_slot:

            async def one(slot: int, scenario: Scenario) -> Trajectory:
                slot_of_rollout.set(slot)
                try:
                    return await rollout(replace(policy, api_key=f"{policy.api_key}.{slot}"), scenario)
                finally:
                    close_slot(slot)

            def start(scenario: Scenario) -> Any:
                return asyncio.ensure_future(one(next(numbers), scenario))

            yield start

    def run_of(self, model: TrainableModel) -> Run:
        """The run folder behind a registered model."""
        return self.served(model).run

    def served(self, model: Model) -> Served:
        """What stands behind a registered model."""
        try:
            return self._served[model.project, model.name]
        except KeyError:
            raise ConfigError(
                f"model {model.project}/{model.name} is not registered: `await model.register(backend)` first"
            ) from None

    async def get_step(self, model: TrainableModel) -> int:
        """Steps completed so far."""
        return self.run_of(model).step

    async def delete_checkpoints(
        self, model: TrainableModel, best_checkpoint_metric: str = "val/reward"
    ) -> None:
        """Keep the last checkpoints and the best by a metric of the step lines or of `model.log`.

        Nothing is deleted, with a warning, when the metric was never recorded.
        """
        run = self.run_of(model)
        best = run.best_step(best_checkpoint_metric, more=model.logged_metrics())
        if best is None:
            logger.warning(
                "%s: %s was never recorded; no checkpoint is deleted", run.folder, best_checkpoint_metric
            )
            return
        run.prune_checkpoints(best=best)

    async def close(self) -> None:
        """Stop serving and give the memory back."""
        for served in self._served.values():
            await served.model.close_client()
            await asyncio.to_thread(served.server.close)
            await asyncio.to_thread(served.engine.close)
            pool.release(served.language_model)
            served.run.close()
        self._served.clear()
