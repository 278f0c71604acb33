"""The configuration of a chain: what is ranked, what learns from it, and who compares in the end."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, model_validator

from groundrule.recipes.config import KeptSection, PolicyConfig, ScenarioConfig, Section
from groundrule.recipes.config_file import read_config
from groundrule.training.dpo import DpoSettings
from groundrule.training.ppo_settings import PpoSettings
from groundrule.training.reward_model import RewardModelSettings

HUMAN = "human"
"""The judge that is a person: `groundrule rank`."""


class RankingsConfig(Section):
    """[rankings]: where they come from."""

    file: str | None = None
    """Rankings or pairs that are there already; without it the policy's own answers are ranked."""
    judge: str = "local/likelihood"
    """Who ranks them: a judge by name, `rag`, `my_rules.py:function`, or `human`, who is asked by `groundrule rank`."""
    answers: int = Field(default=4, ge=2)
    """Sampled answers to each scenario."""
    references: int = Field(default=0, ge=0)
    """Reference answers that are ranked beside the samples of a training scenario: its own, and the rest of other
    scenarios. The policy alone may hardly ever answer well, and a reward model learns from differences."""
    margin: float = Field(default=0.05, ge=0)
    """Answers whose scores are closer are tied."""
    held_out: int = Field(default=24, ge=0)
    """Prompts that no model learns from and the reward model is measured on: of the held-out scenarios, or of the
    file."""


class RewardModelConfig(RewardModelSettings):
    """[reward_model]: how it is trained, or which one is taken."""

    folder: str | None = None
    """A reward model that is there already."""
    base_model: str | None = None
    """What it is trained on; None: the policy's base, which it then shares in memory."""

    @property
    def settings(self) -> RewardModelSettings:
        """Those of the trainer."""
        return _only(RewardModelSettings, self)


class PpoConfig(PpoSettings):
    """[ppo]: the settings of PPO and how much of it."""

    steps: int = Field(default=10, ge=1)
    """Updates of the policy, each from new answers."""
    groups_per_step: int = Field(default=8, ge=1)
    """Scenarios in a step."""
    group_size: int = Field(default=4, ge=2)
    """Answers to each."""
    evaluate_every: int = Field(default=0, ge=0)
    """Greedy answers to the held-out scenarios every so many steps, beside before and after; 0: the last stage is
    the only evaluation."""
    watch: list[str] | None = None
    """Judges that score every training answer and are only logged; None: the one that ranked."""

    @property
    def settings(self) -> PpoSettings:
        """Those of the trainer."""
        return _only(PpoSettings, self)


class DpoConfig(DpoSettings):
    """[dpo]: the settings of DPO."""

    pairs: Literal["all", "extremes"] = "all"
    """Of a ranking: every two answers of different tiers, or the best against the worst."""

    @property
    def settings(self) -> DpoSettings:
        """Those of the trainer."""
        return _only(DpoSettings, self)


class EvaluationConfig(Section):
    """[evaluation]: the trained policy against the one that training began from, on held-out scenarios."""

    judges: list[str] = Field(default_factory=lambda: ["local/likelihood"])
    """Who compares. At least one should have had no part in the training."""
    attempts: int = Field(default=2, ge=1)
    """Sampled answers of each policy to each scenario."""


class ChainSection(KeptSection):
    """[run]: where the chain is kept."""

    project: str = "rlhf"
    """First part of the default folder."""


class RlhfConfig(Section):
    """Everything a chain depends on. A stage without its section, [ppo] or [dpo], is left out."""

    scenarios: ScenarioConfig = ScenarioConfig()
    policy: PolicyConfig = PolicyConfig()
    rankings: RankingsConfig = RankingsConfig()
    reward_model: RewardModelConfig = RewardModelConfig()
    ppo: PpoConfig | None = None
    dpo: DpoConfig | None = None
    evaluation: EvaluationConfig = EvaluationConfig()
    run: ChainSection = ChainSection()

    @model_validator(mode="after")
    def _learns(self) -> RlhfConfig:
        if self.ppo is None and self.dpo is None:
            raise ValueError(
                "neither [ppo] nor [dpo] is there, so no policy would be trained; add one or both"
            )
        return self

    @property
    def folder(self) -> Path:
        """The chain's folder."""
        return self.run.path


def load_rlhf_config(path: str | Path, changes: dict[str, Any] | None = None) -> RlhfConfig:
    """A TOML file as a configuration; see `config_file.read_config`."""
    return read_config(RlhfConfig, path, changes)


Settings = TypeVar("Settings", bound=BaseModel)


def _only(kind: type[Settings], config: BaseModel) -> Settings:
    """The part of a section that a trainer knows."""
    return kind.model_validate({name: getattr(config, name) for name in kind.model_fields})
