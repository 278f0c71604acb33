"""The configuration of learning a prompt: who answers, who judges, who writes lessons, and how sure one must be."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from groundrule.models import embedded
from groundrule.prompt_learning.best_of_n import SIDE_BY_SIDE
from groundrule.prompt_learning.settings import PromptSettings
from groundrule.recipes.config import (
    JudgeConfig,
    KeptSection,
    PolicyConfig,
    ScenarioConfig,
    Section,
    TotalBudget,
    TrainingConfig,
    TrainSection,
)
from groundrule.recipes.config_file import read_config


class AgentConfig(Section):
    """[policy]: the agent whose prompt is learned."""

    model: str = f"local/{embedded.NAME}"
    """A chat model by name, like a judge: `openai/gpt-4.1-mini`, `ollama/qwen3:8b`, `http://host:port/v1#model`, ..."""
    params: dict[str, Any] = Field(default_factory=dict)
    """Further request parameters, and `api_key` or `timeout` of its endpoint."""
    run: str | None = None
    """A run folder: its base model with its newest adapter answers, and `model` is not used."""
    system: str | None = None
    """Replaces the scenarios' own system prompt: the frozen spec."""
    max_tokens: int = Field(default=40, ge=1)
    """Longest answer."""
    temperature: float = Field(default=0.7, ge=0)
    """Of sampling."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Sample from the most likely tokens that hold this share of the probability."""
    max_concurrency: int = Field(default=64, ge=1)
    """Answers that are asked for at once."""


class ReflectionConfig(Section):
    """[reflection]: who reads the judge's words and writes lessons."""

    model: str | None = None
    """A chat model by name; None: the agent's own."""
    params: dict[str, Any] = Field(default_factory=dict)
    """Passed to it."""
    fallback: list[str] = Field(default_factory=list)
    """Models to ask in turn when the first gives nothing usable."""


class LearnConfig(PromptSettings):
    """[learn]: rounds, evidence and tests."""

    method: Literal["lessons", "best-of-n", "gepa"] = "lessons"
    """Lessons that are tested one by one; or, to compare with, whole playbooks: the best of several a round, or those
    of the package gepa."""
    candidates: int = Field(default=SIDE_BY_SIDE, ge=1)
    """Of best-of-n: playbooks that are written in a round."""
    rollouts: int = Field(default=1_600, ge=1)
    """Of gepa, which has no rounds: attempts after which it stops."""
    groups_per_round: int = Field(default=8, ge=1)
    """Training scenarios whose answers a round looks at."""
    group_size: int = Field(default=4, ge=2)
    """Answers to each of them."""
    final: int = Field(default=16, ge=0)
    """Held-out scenarios that are kept for the final test and decide nothing; 0: no final test."""
    playbook: str | None = None
    """A prompt file to begin with, such as an earlier run's; None: no lessons."""
    turns: tuple[Literal["prompt", "weights"], ...] = ("prompt",)
    """In which order prompt and weights learn, such as `["prompt", "weights", "prompt"]`: then each turn is a run
    folder of its own, and `[train]` says how the weights are trained."""
    drop_absorbed: bool = False
    """Before the first round test every lesson by its removal and drop what is not needed any more, as after a
    training of the weights."""

    @model_validator(mode="after")
    def _can_drop(self) -> LearnConfig:
        if self.method != "lessons" and (self.drop_absorbed or "weights" in self.turns):
            raise ValueError(
                f"learn.method {self.method!r} does not test lessons by their removal; use 'lessons', or leave "
                "learn.drop_absorbed and learn.turns out"
            )
        return self


class PromptRun(KeptSection):
    """[run]: where it is kept, and what it is called."""

    project: str = "prompts"


class PromptConfig(Section):
    """Everything that learning a prompt depends on."""

    scenarios: ScenarioConfig = ScenarioConfig()
    policy: AgentConfig = AgentConfig()
    judge: JudgeConfig = JudgeConfig()
    reflection: ReflectionConfig = ReflectionConfig()
    learn: LearnConfig = LearnConfig()
    train: TrainSection = TrainSection()
    budget: TotalBudget = TotalBudget()
    run: PromptRun = PromptRun()

    @model_validator(mode="after")
    def _turns_can_be_taken(self) -> PromptConfig:
        if not self.learn.turns:
            raise ValueError('learn.turns is empty; write ["prompt"], or ["prompt", "weights", "prompt"]')
        if "weights" in self.learn.turns and not (
            self.policy.model.startswith("local/") and not self.policy.run
        ):
            raise ValueError(
                f"learn.turns trains weights, which needs a local model, and policy.model is {self.policy.model!r}; "
                "write 'local/NAME' with a folder or an id, and leave policy.run out"
            )
        return self

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.run.path

    def judging(self) -> TrainingConfig:
        """As a training would name the same judge."""
        return TrainingConfig(
            scenarios=self.scenarios,
            policy=PolicyConfig(system=self.policy.system, max_tokens=self.policy.max_tokens),
            judge=self.judge,
        ).model_copy(update={"run": TrainingConfig().run.model_copy(update={"seed": self.run.seed})})


def load_prompt_config(path: str | Path, changes: dict[str, Any] | None = None) -> PromptConfig:
    """A TOML file as a configuration; see `config_file.read_config`."""
    return read_config(PromptConfig, path, changes)
