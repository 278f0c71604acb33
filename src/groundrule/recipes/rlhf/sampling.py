"""Answers of the policy, as it began or as it was trained."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from groundrule._util.aio import on_model_thread
from groundrule._util.seed import derive
from groundrule.backends.local import LocalBackend
from groundrule.backends.model import TrainableModel
from groundrule.data.group import TrajectoryGroup
from groundrule.data.records import read_groups, write_groups
from groundrule.data.scenario import Scenario
from groundrule.models.adapter_files import ADAPTER
from groundrule.models.lora import LoraSettings, load_adapter_state
from groundrule.recipes.attempts import gather_attempts
from groundrule.recipes.rlhf.config import RlhfConfig
from groundrule.rollouts.answer import AnswerOnce
from groundrule.training.drift import answer_kl
from groundrule.training.lora_trainer import TrainerSettings

EVALUATION = "evaluation"
"""The purpose that all policies of a comparison answer for, and the folder of what they said."""


@dataclass(frozen=True)
class Trained:
    """A policy that was trained: its checkpoint, and the shape of its adapter."""

    checkpoint: Path
    lora: LoraSettings


@dataclass(frozen=True)
class Answering:
    """A policy that can be asked."""

    config: RlhfConfig
    backend: LocalBackend
    model: TrainableModel

    async def sample(self, scenarios: Sequence[Scenario], attempts: int) -> list[TrajectoryGroup]:
        """So many answers to each scenario, a group each; an attempt that failed is among its exceptions."""
        policy = self.config.policy
        rollout = AnswerOnce(
            self.model.openai_client(),
            max_tokens=policy.max_tokens,
            temperature=policy.temperature,
            top_p=policy.top_p,
            system=policy.system,
        )
        return await gather_attempts(self.backend, self.model, rollout, scenarios, attempts)

    async def sample_once(
        self, path: Path, scenarios: Sequence[Scenario], attempts: int
    ) -> list[TrajectoryGroup]:
        """The same, kept in a file: where that is there already it is read."""
        if not path.exists():
            write_groups(path, await self.sample(scenarios, attempts))
        return read_groups(path)

    async def kl(self, groups: Sequence[TrajectoryGroup]) -> list[list[float]]:
        """Of every answer of every group, the KL to the policy as it began, in nats; see `answer_kl`."""
        language_model = self.backend.served(self.model).language_model
        return await on_model_thread(answer_kl, language_model, groups)


@asynccontextmanager
async def answering(
    config: RlhfConfig, purpose: str, trained: Trained | None = None
) -> AsyncIterator[Answering]:
    """The policy behind an endpoint; one purpose draws the same random numbers whoever answers."""
    backend = LocalBackend(
        device=config.policy.device,
        settings=TrainerSettings(lora=trained.lora) if trained else TrainerSettings(),
        seed=derive(config.run.seed, "rlhf", purpose),
    )
    model = TrainableModel(
        name=config.run.name, project=config.run.project, base_model=config.policy.base_model
    )
    with tempfile.TemporaryDirectory(prefix="groundrule-") as scratch:
        try:
            await backend.register_at(model, Path(scratch) / "run", {})
            if trained:
                await on_model_thread(_put_on, backend, model, trained.checkpoint)
            yield Answering(config, backend, model)
        finally:
            await backend.close()


async def kept_answers(
    config: RlhfConfig, path: Path, scenarios: Sequence[Scenario], trained: Trained | None = None
) -> list[TrajectoryGroup]:
    """Answers for an evaluation. Where the file is there already, no model is loaded."""
    if path.exists():
        return read_groups(path)
    async with answering(config, EVALUATION, trained) as policy:
        return await policy.sample_once(path, scenarios, config.evaluation.attempts)


def _put_on(backend: LocalBackend, model: TrainableModel, checkpoint: Path) -> None:
    from safetensors.torch import load_file

    served = backend.served(model)
    with served.language_model.lock:
        load_adapter_state(served.language_model, load_file(checkpoint / ADAPTER))
    served.engine.publish(1)
