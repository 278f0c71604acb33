"""What one training run is made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from groundrule.backends.local import LocalBackend
from groundrule.backends.model import TrainableModel
from groundrule.data.protocols import Rollout, Scorer
from groundrule.data.runs import Run
from groundrule.data.scenario import Scenario
from groundrule.recipes.config import TrainingConfig
from groundrule.recipes.evaluate import Evaluator
from groundrule.rewards.economy import CallCost

Report = Callable[[str], None]


@dataclass
class Training:
    """What one run is made of."""

    config: TrainingConfig
    backend: LocalBackend
    model: TrainableModel
    rollout: Rollout
    scorer: Scorer
    scenarios: list[Scenario]
    evaluator: Evaluator | None
    report: Report
    verified: bool = False
    """Whether a verifier has a part in the reward."""
    spec: str | None = None
    """What answers are judged by, where the agent is given more than that; None: by what it is given."""
    expected: CallCost | None = None
    """What a judge call is expected to take; None where judging is free."""

    @property
    def run(self) -> Run:
        """The run folder."""
        return self.backend.run_of(self.model)
