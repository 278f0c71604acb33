"""The scenarios of a run, each with one use: answers to learn from, tests of lessons, the final test."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from groundrule.data.scenario import Scenario
from groundrule.errors import ConfigError
from groundrule.recipes.prompt_learning.config import PromptConfig
from groundrule.rollouts.scenarios import load_scenarios


@dataclass(frozen=True)
class Material:
    """What a run works on."""

    spec: str
    """The one system prompt that all answers are judged by."""
    train: Sequence[Scenario]
    tested: Sequence[Scenario]
    """For tests of lessons."""
    final: Sequence[Scenario]
    """Used once, at the end."""


def material_of(config: PromptConfig) -> Material:
    """Raises `ConfigError` where a part is missing, or where there is not exactly one system prompt."""
    source, learn = config.scenarios.source, config.learn
    train = load_scenarios(source, split="train")[: config.scenarios.limit]
    held_out = load_scenarios(source, split="held-out")[: config.scenarios.held_out_limit]
    if not train:
        raise ConfigError(f"{source} has no scenario with split 'train' to answer")
    if len(held_out) <= learn.final:
        raise ConfigError(
            f"{source} has {len(held_out)} held-out scenarios and learn.final keeps {learn.final}, so none is left to "
            "test lessons on; hold out more, or lower learn.final"
        )
    tested = held_out[: len(held_out) - learn.final]
    return Material(
        only_spec(config.policy.system, [*train, *held_out]), train, tested, held_out[len(tested) :]
    )


def only_spec(system: str | None, scenarios: Sequence[Scenario]) -> str:
    """The system prompt of all scenarios, or `system` in its place. None, or several, is a `ConfigError`."""
    specs = {system or scenario.system for scenario in scenarios}
    if len(specs) > 1:
        raise ConfigError(
            f"the scenarios have {len(specs)} different system prompts, but lessons stand below one; set "
            "policy.system, or take each from a file of its own"
        )
    spec = min(specs)
    if not spec.strip():
        raise ConfigError(
            "the scenarios have no system prompt, which is what answers are judged by; fill the column `system` or set "
            "policy.system"
        )
    return spec
