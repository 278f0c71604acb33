"""What every learner of prompts has that goes round by round: its parts, its prompts, and what a round may be given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from groundrule._util.digest import digest
from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Policy, Update
from groundrule.data.scenario import Scenario
from groundrule.errors import ConfigError
from groundrule.prompt_learning.evidence import Evidence, collect, prompt_ids
from groundrule.prompt_learning.lint import Leaks
from groundrule.prompt_learning.reflection import Reflector
from groundrule.prompt_learning.settings import PromptSettings
from groundrule.prompt_learning.state import LearnerState
from groundrule.prompt_learning.trial import Trial
from groundrule.prompt_learning.versions import Version


@dataclass
class RoundLearner(ABC):
    """Improves the playbook below a frozen spec; how, is what its kinds differ in."""

    trial: Trial
    """Who answers and who judges; its spec is the authority. It counts the rollouts of the tests."""
    reflector: Reflector
    scenarios: Sequence[Scenario]
    """For tests alone."""
    settings: PromptSettings = field(default_factory=PromptSettings)
    seed: int = 0
    known: Sequence[Scenario] = ()
    """Further scenarios whose words no lesson may repeat: those that are trained on, and those of a final test."""
    state: LearnerState = field(default=None)  # type: ignore[assignment]
    record: dict[str, Any] = field(default_factory=dict, init=False)
    """What the last round saw, asked, refused, tested and decided, as plain data."""
    tested_groups: list[TrajectoryGroup] = field(default_factory=list, init=False)
    """All groups that were judged in the last round's test."""

    def __post_init__(self) -> None:
        if not self.scenarios:
            raise ConfigError("there are no scenarios to test a prompt on; hold some out of the training")
        if self.state is None:
            self.state = LearnerState.at_start(self.settings)
        self._leaks = Leaks.of([*self.scenarios, *self.known], self.spec)

    @property
    def spec(self) -> str:
        """The frozen text that answers are judged by."""
        return self.trial.spec

    @property
    def policy(self) -> Policy:
        """The policy with the best prompt so far."""
        head = self.state.pool.head
        return replace(self.trial.policy, version=head.number, system_prompt=head.playbook.below(self.spec))

    @property
    def parent(self) -> Version:
        """The version that this round starts from."""
        return self.state.pool[self.state.parent]

    @property
    def parent_prompt(self) -> str:
        """What the answers of the next `update` must have been given under."""
        return self.parent.playbook.below(self.spec)

    @abstractmethod
    async def update(self, groups: Sequence[TrajectoryGroup]) -> Update:
        """One round. Raises `JudgeError` or `LlmError` where a model gives nothing usable; then nothing has changed."""

    def _evidence(self, groups: Sequence[TrajectoryGroup]) -> Evidence:
        """What groups say that may say something; raises `ConfigError` for others."""
        self._check(groups)
        return collect(
            groups,
            least_reliability=self.settings.least_reliability,
            least_gap=self.settings.least_gap,
            least_support=self.settings.least_support,
            prefix=f"r{self.state.round + 1}g",
        )

    def _check(self, groups: Sequence[TrajectoryGroup]) -> None:
        known = {scenario.id for scenario in self.scenarios}
        both = [group.scenario_id for group in groups if group.scenario_id in known]
        if both:
            raise ConfigError(
                f"scenario {both[0]!r} gives evidence and is tested on too, so a lesson about it alone would pass; "
                "keep the scenarios of tests out of the groups"
            )
        own = digest(self.parent_prompt)
        others = prompt_ids(groups) - {own}
        if others:
            raise ConfigError(
                f"groups were answered under the prompt {min(others)}, but this round starts from version "
                f"{self.state.parent} ({own}); gather them with policy.system_prompt = learner.parent_prompt"
            )

    def _counts(self, evidence: Evidence, *, refused: int, tested: int, accepted: int) -> dict[str, float]:
        """The metrics of a round that is over."""
        head = self.state.pool.head
        return {
            "prompt/contrasts": len(evidence.contrasts),
            "prompt/complaints": len(evidence.complaints),
            "prompt/unreliable_groups": evidence.unreliable,
            "prompt/level_groups": evidence.level,
            "prompt/refused": refused,
            "prompt/tested": tested,
            "prompt/accepted": accepted,
            "prompt/lessons": len(head.playbook.lessons),
            "prompt/version": head.number,
            "prompt/gain": head.gain,
            "prompt/rollouts": self.trial.rollouts,
        }
