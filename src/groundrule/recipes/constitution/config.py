"""The configuration of a chain by a constitution: which one, who criticises and compares, and what learns from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field, model_validator

from groundrule.errors import ConfigError, DataError
from groundrule.recipes.config import PolicyConfig, ScenarioConfig, Section, TotalBudget
from groundrule.recipes.config_file import read_config
from groundrule.recipes.rlhf.config import (
    ChainSection,
    DpoConfig,
    EvaluationConfig,
    PpoConfig,
    RankingsConfig,
    RewardModelConfig,
    RlhfConfig,
)
from groundrule.rewards.constitution import Constitution
from groundrule.training.sft import SftSettings

SFT, PREFERENCES, RLHF = "sft", "preferences.jsonl", "rlhf"
"""In the chain's folder: the model after the first stage, the labels of the second, and what learns from them."""


class ConstitutionConfig(Section):
    """[constitution]: the principles, and the models that read them."""

    file: str = "customer-support"
    """A ready one by its name, or a .toml file."""
    tags: list[str] = Field(default_factory=list)
    """Only principles that have one of these; none: all of them."""
    critic: str | None = None
    """Who criticises and revises: a chat model by name. None: the policy's own base model."""
    critic_params: dict[str, Any] = Field(default_factory=dict)
    """Passed to the critic, such as `temperature` and `max_tokens`."""
    judge: str | None = None
    """Who compares; None: the critic."""
    judge_params: dict[str, Any] = Field(default_factory=dict)
    """Passed to the judge."""


class RevisionsConfig(Section):
    """[revisions]: how answers are rewritten."""

    rounds: int = Field(default=2, ge=1)
    """Critiques and revisions of each answer, one principle each."""
    keep: Literal["all", "last"] = "last"
    """What is learned: every revision, or the last one of each prompt."""
    exemplars: int = Field(default=1, ge=0)
    """How many of the constitution's exemplars the critic is shown first."""


class SftConfig(SftSettings):
    """[sft]: the settings of training on the revisions."""


class PreferencesConfig(Section):
    """[preferences]: how answers of the revised model are compared."""

    answers: int = Field(default=2, ge=2)
    """Sampled answers to each scenario; every two of them are compared."""
    principles: int = Field(default=1, ge=1)
    """Drawn for each comparison."""
    think: bool = False
    """Let the judge think aloud before it chooses; the probability is then held to 0.4 .. 0.6."""
    logprobs: bool = True
    """Take probabilities from log-probabilities where the judge gives them."""
    samples: int = Field(default=4, ge=1)
    """How often it is asked in each order where it does not."""
    held_out: int = Field(default=8, ge=0)
    """Prompts that no model learns from and the reward model is measured on."""
    also: str | None = None
    """A file of further preferences that are learned from beside these, such as people's."""


class ChainRun(ChainSection):
    """[run]: where the chain is kept."""

    project: str = "constitution"


class ConstitutionalConfig(Section):
    """Everything a chain depends on. A stage without its section, [ppo] or [dpo], is left out."""

    scenarios: ScenarioConfig = ScenarioConfig()
    policy: PolicyConfig = PolicyConfig()
    constitution: ConstitutionConfig = ConstitutionConfig()
    revisions: RevisionsConfig = RevisionsConfig()
    sft: SftConfig = SftConfig()
    preferences: PreferencesConfig = PreferencesConfig()
    reward_model: RewardModelConfig = RewardModelConfig()
    ppo: PpoConfig | None = None
    dpo: DpoConfig | None = None
    evaluation: EvaluationConfig = EvaluationConfig()
    budget: TotalBudget = TotalBudget()
    run: ChainRun = ChainRun()

    @model_validator(mode="after")
    def _learns(self) -> ConstitutionalConfig:
        if self.ppo is None and self.dpo is None:
            raise ValueError(
                "neither [ppo] nor [dpo] is there, so nothing would learn from the preferences; add one or both"
            )
        return self

    @property
    def folder(self) -> Path:
        """The chain's folder."""
        return self.run.path

    @property
    def critic(self) -> str:
        """Who criticises and revises."""
        return self.constitution.critic or f"local/{self.policy.base_model}"

    @property
    def judge(self) -> str:
        """Who compares."""
        return self.constitution.judge or self.critic

    def principles(self) -> Constitution:
        """The constitution itself; raises `ConfigError` for one that cannot be used."""
        try:
            return Constitution.load(self.constitution.file).with_tags(self.constitution.tags)
        except DataError as error:
            raise ConfigError(f"constitution.file: {error}") from error

    def rlhf(self) -> RlhfConfig:
        """What the rest of the chain is: RLHF from the revised model, with these preferences for rankings."""
        return RlhfConfig(
            scenarios=self.scenarios,
            policy=self.policy.model_copy(update={"base_model": str(self.folder / SFT)}),
            rankings=RankingsConfig(file=str(self.folder / PREFERENCES), held_out=self.preferences.held_out),
            reward_model=self.reward_model,
            ppo=self.ppo,
            dpo=self.dpo,
            evaluation=self.evaluation,
            run=ChainSection(
                project=self.run.project,
                name=self.run.name,
                folder=str(self.folder / RLHF),
                seed=self.run.seed,
            ),
        )

    def start(self) -> RlhfConfig:
        """The same with the policy as it is before anything was learned."""
        return self.rlhf().model_copy(update={"policy": self.policy})


def load_constitutional_config(
    path: str | Path, changes: dict[str, Any] | None = None
) -> ConstitutionalConfig:
    """A TOML file as a configuration; see `config_file.read_config`."""
    return read_config(ConstitutionalConfig, path, changes)
