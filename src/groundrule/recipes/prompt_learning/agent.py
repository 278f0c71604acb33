"""The agent of a configuration: a chat model by name, or what a run has trained."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from groundrule.data.protocols import Policy, Rollout
from groundrule.data.runs import Run
from groundrule.errors import CheckpointError
from groundrule.llm.providers import request_params, resolve_client
from groundrule.recipes.config import TrainingConfig
from groundrule.recipes.config_file import checked_config
from groundrule.recipes.prompt_learning.config import AgentConfig, PromptConfig
from groundrule.rollouts.chat_answer import ChatAnswer


@asynccontextmanager
async def agent_of(
    config: PromptConfig, rollout: Rollout | None = None
) -> AsyncIterator[tuple[Rollout, Policy]]:
    """Who answers, ready to be asked: `rollout`, or the model that is named.

    Raises `ConfigError` for a model that cannot be had.
    """
    agent = config.policy
    if rollout is not None:
        yield rollout, Policy(base_url="", model=agent.model, version=0)
        return
    if agent.run is not None:
        async with _trained(config, Path(agent.run)) as found:
            yield found
        return
    client, model = resolve_client(agent.model, agent.params)
    yield ChatAnswer(client, model, _params(agent)), Policy(base_url="", model=model, version=0)


def _params(agent: AgentConfig) -> dict[str, object]:
    top_p = {} if agent.top_p == 1.0 else {"top_p": agent.top_p}
    asked = {"temperature": agent.temperature, "max_tokens": agent.max_tokens, **top_p}
    return {**asked, **request_params(agent.params)}


@asynccontextmanager
async def _trained(config: PromptConfig, folder: Path) -> AsyncIterator[tuple[Rollout, Policy]]:
    """The base model of a run with its newest adapter, behind an endpoint of its own."""
    from groundrule.recipes.trained_policy import Trained, served_policy
    from groundrule.recipes.trainer_settings import settings_of
    from groundrule.rollouts.answer import AnswerOnce
    from groundrule.training.checkpoints import newest_of

    with Run.open(folder, read_only=True) as run:
        checkpoint = newest_of(run)
        before = checked_config(TrainingConfig, run.config, source=str(folder))
    if checkpoint is None:
        raise CheckpointError(
            f"{folder} has no complete checkpoint; train a step first, or leave policy.run out"
        )
    trained = Trained(checkpoint, settings_of(before).lora)
    async with served_policy(before.policy, before.run, trained, seed=config.run.seed) as (_, model):
        agent = config.policy
        rollout = AnswerOnce(
            model.openai_client(),
            max_tokens=agent.max_tokens,
            temperature=agent.temperature,
            top_p=agent.top_p,
        )
        yield rollout, model.policy(version=run.step)
