"""The chain from answers to a policy that is better than the one that gave them. Stages that are done stay done."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from groundrule._util.aio import on_model_thread
from groundrule.data.scenario import Scenario
from groundrule.errors import ConfigError
from groundrule.recipes.rlhf.config import HUMAN, RlhfConfig
from groundrule.recipes.rlhf.evaluation import evaluate
from groundrule.recipes.rlhf.policy import train_dpo, train_ppo, trained_policies
from groundrule.recipes.rlhf.rankings import rank_answers, sample_answers
from groundrule.recipes.rlhf.reward import train_reward_model
from groundrule.recipes.rlhf.stages import Stages, Work, settings_under
from groundrule.rollouts.scenarios import load_scenarios

STAGES = ("answers", "rankings", "reward-model", "ppo", "dpo", "evaluation")
"""In order. Each depends on those before it."""
_SAMPLED = ("scenarios.", "policy.", "run.seed")
_DEPENDS = {
    "answers": _SAMPLED,
    "rankings": (*_SAMPLED, "rankings."),
    "reward-model": ("reward_model.",),
    "ppo": ("ppo.",),
    "dpo": ("dpo.",),
    "evaluation": ("ppo.", "dpo.", "evaluation."),
}
"""The settings that a stage depends on beyond those of the stages before it."""


async def run_rlhf(
    config: RlhfConfig, *, until: str | None = None, report: Callable[[str], None] = print
) -> dict[str, Any]:
    """Every stage up to `until` (the last by default), by name what it gave.

    A stage that is done is not done again; what was interrupted goes on: PPO and DPO where they were, the others from
    their beginning.
    """
    if until is not None and until not in STAGES:
        raise ConfigError(f"there is no stage {until!r}; the stages are {', '.join(STAGES)}")
    chain, results = _Chain(config, report), dict[str, Any]()
    files = Stages(config.folder, STAGES, report)
    for name, work in chain.stages().items():
        results[name] = await files.do(name, settings_under(config, *_DEPENDS[name]), work)
        if name == until:
            break
    return results


class _Chain:
    """The stages of one configuration."""

    def __init__(self, config: RlhfConfig, report: Callable[[str], None]) -> None:
        self.config = config
        self.report = report
        source, limits = config.scenarios.source, config.scenarios
        self.train = load_scenarios(source, split="train")[: limits.limit]
        self.held_out = load_scenarios(source, split="held-out")[: limits.held_out_limit]
        _check(config, self.train, self.held_out)

    def stages(self) -> dict[str, Work]:
        """Those that the configuration asks for, in order."""
        config = self.config
        measured = self.held_out[: config.rankings.held_out]
        chosen: dict[str, Work] = {}
        if not config.rankings.file:
            chosen["answers"] = partial(sample_answers, config, self.train, measured)
        chosen["rankings"] = partial(rank_answers, config, self.train, measured)
        if config.ppo is not None:
            chosen["reward-model"] = partial(on_model_thread, train_reward_model, config, self.report)
            chosen["ppo"] = partial(train_ppo, config, config.ppo, self.report)
        if config.dpo is not None:
            chosen["dpo"] = partial(on_model_thread, train_dpo, config, config.dpo, self.report)
        if self.held_out:
            chosen["evaluation"] = self._evaluate
        return chosen

    async def _evaluate(self) -> dict[str, Any]:
        return await evaluate(self.config, self.held_out, trained_policies(self.config), self.report)


def _check(config: RlhfConfig, train: list[Scenario], held_out: list[Scenario]) -> None:
    """What cannot work is said before anything is loaded."""
    if not train:
        raise ConfigError(f"{config.scenarios.source} has no scenario with split 'train' to answer")
    if (
        not held_out
        and not config.rankings.file
        and config.rankings.judge != HUMAN
        and config.rankings.held_out
    ):
        raise ConfigError(
            f"{config.scenarios.source} has no scenario with split 'held-out', so there is nothing to measure the "
            "reward model and the policies on; add some, or set rankings.held_out = 0"
        )
