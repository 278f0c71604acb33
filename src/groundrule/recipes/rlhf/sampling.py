"""Answers of the policy, as it began or as it was trained."""

from __future__ import annotations

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
from groundrule.recipes.attempts import gather_attempts
from groundrule.recipes.rlhf.config import RlhfConfig
from groundrule.recipes.trained_policy import Trained, served_policy
from groundrule.rollouts.answer import AnswerOnce
from groundrule.training.drift import answer_kl

EVALUATION = "evaluation"
"""The purpose that all policies of a comparison answer for, and the folder of what they said."""


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
    seed = derive(config.run.seed, "rlhf", purpose)
    async with served_policy(config.policy, config.run, trained, seed=seed) as (backend, model):
        yield Answering(config, backend, model)


async def kept_answers(
    config: RlhfConfig, path: Path, scenarios: Sequence[Scenario], trained: Trained | None = None
) -> list[TrajectoryGroup]:
    """Answers for an evaluation. Where the file is there already, no model is loaded."""
    if path.exists():
        return read_groups(path)
    async with answering(config, EVALUATION, trained) as policy:
        return await policy.sample_once(path, scenarios, config.evaluation.attempts)
