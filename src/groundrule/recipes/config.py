"""The configuration of a training run: five sections and one for PPO, every field explained, unknown keys refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from groundrule.algorithms.advantages import ADVANTAGES
from groundrule.algorithms.loss_settings import Truncated
from groundrule.algorithms.presets import PRESETS
from groundrule.backends import BACKENDS
from groundrule.models import embedded
from groundrule.recipes.config_file import checked_config, read_config
from groundrule.training.ppo_settings import PpoSettings


class Section(BaseModel):
    """A frozen section; keys that it does not know are errors."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", protected_namespaces=(), use_attribute_docstrings=True
    )


class ScenarioConfig(Section):
    """[scenarios]: what is trained on and what is held out."""

    source: str = "support"
    """A built-in set (`support`, `pydoc`, `sums`) or a .jsonl or .csv file."""
    limit: int | None = Field(default=None, ge=1)
    """At most so many training scenarios, the first ones."""
    held_out_limit: int | None = Field(default=48, ge=0)
    """At most so many held-out scenarios in an evaluation; 0: no evaluation."""


class PolicyConfig(Section):
    """[policy]: the model that is trained, and how it answers."""

    base_model: str = embedded.NAME
    """`smollm2-135m`, a model folder, or a Hugging Face id."""
    backend: Literal[*tuple(BACKENDS)] = "local"  # type: ignore[valid-type]
    """Where the policy is served and trained."""
    device: str | None = None
    """`cpu`, `cuda`, `mps`; None: the best that is there."""
    system: str | None = None
    """Replaces the scenarios' own system prompt."""
    playbook: str | None = None
    """A prompt file with lessons below the system prompt, such as `prompt.txt` of a `groundrule learn-prompt` run. The
    agent is given all of it; answers are judged by the system prompt alone."""
    max_tokens: int = Field(default=40, ge=1)
    """Longest answer. An answer that is cut there counts as truncated in the metrics."""
    temperature: float = Field(default=0.7, gt=0)
    """Of sampling; the trainer computes with it too. Evaluations are greedy."""
    top_p: float = Field(default=1.0, gt=0, le=1)
    """Sample from the most likely tokens that hold this share of the probability."""


class JurorConfig(Section):
    """[[judge.jury]]: one more judge."""

    model: str
    """By name, as in `[judge]`; or `rag`, or `my_rewards.py:function`."""
    name: str | None = None
    """What it is called in the metrics; None: as the model."""
    params: dict[str, Any] = Field(default_factory=dict)
    """Passed to this judge."""
    weight: float = Field(default=1.0, gt=0)
    """Against the other judges; `[judge]` itself has 1."""
    role: Literal["score", "holdout", "tiebreak", "reserve"] = "score"
    """`holdout`: logged, never trained on. `tiebreak`: asked where reliability is low. `reserve`: where one fails."""


class BudgetConfig(Section):
    """[judge.budget]: hard limits. Before a step is cut, its judging gets cheaper, which is reported."""

    usd_per_step: float | None = Field(default=None, gt=0)
    """US dollars; judges of unknown price are not covered."""
    usd_per_run: float | None = Field(default=None, gt=0)
    """The same for the whole run, resumed or not."""
    tokens_per_step: int | None = Field(default=None, ge=1)
    """Sent and received."""
    tokens_per_run: int | None = Field(default=None, ge=1)
    """The same for the whole run."""
    calls_per_step: int | None = Field(default=None, ge=1)
    """Calls that are sent; answers from the cache are free."""
    calls_per_run: int | None = Field(default=None, ge=1)
    """The same for the whole run."""


Combine = Literal["verifier", "lexicographic", "gated", "sum", "normalised"]


class JudgeConfig(Section):
    """[judge]: who gives the rewards."""

    model: str = "local/likelihood"
    """A judge by name: `local/likelihood`, `openai/o3`, `ollama/qwen3:32b`, `http://host:port/v1#model`, ..."""
    params: dict[str, Any] = Field(default_factory=dict)
    """Passed to the judge: sampling parameters, or `LikelihoodSettings`."""
    verifier: str | None = None
    """What can be checked is checked: `math`, `code`, `exact`, `json_schema`, `regex`, or `my_rewards.py:function`,
    against each scenario's `reference`, which no judge is shown."""
    combine: Combine = "lexicographic"
    """With a verifier: `verifier` asks no judge at all; otherwise how the two become one reward, see
    `rewards.compose.Composite`."""
    rubric: str | None = None
    """Text that is added to the system prompt as the criterion; None: the default rubric."""
    fallback: list[str] = Field(default_factory=list)
    """Judges to ask in turn when the first gives no usable scores."""
    jury: list[JurorConfig] = Field(default_factory=list)
    """[[judge.jury]]: further judges beside `model`."""
    checklist: str | None = None
    """A file of criteria that are judged one by one, or "auto": made from the system prompt by the judge."""
    passes: int = Field(default=2, ge=1)
    """How often a judge that reads is asked about a group, each time in another order."""
    max_passes: int | None = Field(default=4, ge=1)
    """Pairs of passes are added up to so many while the reliability is below `min_reliability`."""
    min_reliability: float = Field(default=0.6, ge=0, le=1)
    """Reliability (intraclass correlation over passes) that is enough."""
    canary_rate: float = Field(default=0.02, ge=0, le=1)
    """Share of calls with an answer that is known to be bad; it must come out lowest."""
    twin_rate: float = Field(default=0.02, ge=0, le=1)
    """Share of calls with an exact copy of one answer; both should get the same score."""
    context_tokens: int | None = Field(default=None, ge=1)
    """What fits into the judge; None: what is known of its model."""
    budget: BudgetConfig = BudgetConfig()
    """[judge.budget]: what judging may cost."""

    @model_validator(mode="after")
    def _passes_in_order(self) -> JudgeConfig:
        if self.max_passes is not None and self.max_passes < self.passes:
            raise ValueError(f"max_passes is {self.max_passes}, below passes = {self.passes}")
        return self


OF_GRPO = frozenset(
    """preset advantage tie_band kl_coef truncated learning_rate lora_rank epochs max_staleness importance
    importance_cap""".split()
)
"""Keys of [train] that PPO has no use for, or that stand in [ppo]."""


class TrainSection(Section):
    """[train]: how many answers, and how they become a step."""

    steps: int = Field(default=10, ge=1)
    """The step to train to, counted from 1. A run may be resumed with more steps."""
    groups_per_step: int = Field(default=4, ge=1)
    """Scenarios per step; each gives one group."""
    group_size: int = Field(default=8, ge=2)
    """Answers to the same scenario; the judge compares them, so two are the least."""
    learning_rate: float = Field(default=6e-4, gt=0)
    """Of AdamW on the adapter; constant."""
    preset: Literal[*tuple(PRESETS)] = "ruler"  # type: ignore[valid-type]
    """A published variant by name, see `algorithms.presets`; the keys below win over it."""
    advantage: Literal[*tuple(ADVANTAGES)] | None = None  # type: ignore[valid-type]
    """How a group's rewards become pushes; see `algorithms.advantages`. None: as the preset says."""
    tie_band: float = Field(default=0.0, ge=0)
    """Rewards closer than so many standard errors of the judge are tied; 0: never."""
    kl_coef: float | None = Field(default=None, ge=0)
    """Weight of the KL term to the base model. None: as the preset says, which mostly is 0."""
    truncated: Truncated = "train"
    """Answers that were cut at `policy.max_tokens`: `train` on their reward, `mask` (they count in the group's mean,
    but are not pushed), or `drop` (as if they had no score)."""
    resample_rounds: int | None = Field(default=None, ge=0)
    """How often groups in which all rewards are equal are replaced by other scenarios' within a step. None: 3 where
    the preset asks for it (dynamic sampling), else 0."""
    lora_rank: int = Field(default=16, ge=1)
    """Of the adapter; its alpha is twice this."""
    epochs: int = Field(default=1, ge=1)
    """Optimizer steps on the same groups."""
    max_staleness: int = Field(default=0, ge=0)
    """0: every step waits for its own answers. Above: answers go on while a step trains, and are trained on at most
    so many steps after the policy that gave them; older ones are dropped."""
    importance: Literal["none", "token", "sequence"] = "token"
    """With `max_staleness`: how the loss is weighed for answers of an earlier policy, at most by `importance_cap`."""
    importance_cap: float = Field(default=2.0, gt=0)
    """Most that the weight of a token or an answer can be."""
    max_exceptions: float = Field(default=0.5, ge=0)
    """Failed rollouts that a step survives: a count, or a share below 1."""
    rollout_timeout_s: float | None = Field(default=600.0, gt=0)
    """Longest time of one rollout; None: no limit."""


class TotalBudget(Section):
    """[budget]: hard limits of the whole work, resumed or not. A larger one and the same command go on."""

    usd: float | None = Field(default=None, gt=0)
    """US dollars; models of unknown price are not covered."""
    tokens: int | None = Field(default=None, ge=1)
    """Sent and received."""
    calls: int | None = Field(default=None, ge=1)
    """Calls that are sent; answers from the cache are free."""


class KeptSection(Section):
    """What every [run] says: where it is kept, and what it is called."""

    project: str = "groundrule"
    """First part of the default run folder."""
    name: str = "run"
    """Second part; also the model's name at the endpoint."""
    folder: str | None = None
    """The run folder; None: `runs/<project>/<name>`."""
    seed: int = 0
    """Decides scenario order, adapter and sampling: the same seed on the same machine gives the same bytes."""

    @property
    def path(self) -> Path:
        """Its folder."""
        return Path(self.folder or Path("runs") / self.project / self.name)


class RunSection(KeptSection):
    """[run]: where it is kept, what it is called, and how often it is evaluated."""

    evaluate_every: int = Field(default=0, ge=0)
    """Evaluate on held-out scenarios every so many steps, besides before and after; 0: only those two."""
    evaluate_attempts: int = Field(default=0, ge=0)
    """Sampled answers to each held-out scenario, beside the greedy one, for pass@k and maj@k; 0: none. They need
    `judge.verifier`."""
    keep_checkpoints: int = Field(default=3, ge=1)
    """The last so many stay, and the best."""


class PpoSection(PpoSettings):
    """[ppo]: PPO with a critic in place of GRPO, even where the section is empty.

    Learning rates, loss and adapters are set here and not in [train].
    """


class TrainingConfig(Section):
    """Everything a run depends on."""

    scenarios: ScenarioConfig = ScenarioConfig()
    policy: PolicyConfig = PolicyConfig()
    judge: JudgeConfig = JudgeConfig()
    train: TrainSection = TrainSection()
    ppo: PpoSection | None = None
    run: RunSection = RunSection()

    @model_validator(mode="after")
    def _one_algorithm(self) -> TrainingConfig:
        idle = self.train.model_fields_set & OF_GRPO if self.ppo is not None else set()
        if idle:
            raise ValueError(
                f"train.{min(idle)} belongs to GRPO, and [ppo] asks for PPO; take it out, or take [ppo] out"
            )
        return self

    @property
    def folder(self) -> Path:
        """The run folder."""
        return self.run.path


def load_config(path: str | Path, changes: dict[str, Any] | None = None) -> TrainingConfig:
    """A TOML file as a configuration; see `config_file.read_config`."""
    return read_config(TrainingConfig, path, changes)


def parse_config(data: dict[str, Any], *, source: str = "configuration") -> TrainingConfig:
    """The checked configuration of plain data."""
    return checked_config(TrainingConfig, data, source=source)
