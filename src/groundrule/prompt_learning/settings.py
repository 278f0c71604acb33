"""How a prompt is learned: what counts as evidence, and how sure one must be before a lesson is kept."""

from __future__ import annotations

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from groundrule.prompt_learning.acceptance import Bounds
from groundrule.prompt_learning.edits import MOST_EDITS


class PromptSettings(BaseModel):
    """Of a `PromptLearner`; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    rounds: int = Field(default=8, ge=1)
    """How many rounds the chance of an error is divided among; a run may go on after them, with less and less."""
    edits: int = Field(default=MOST_EDITS, ge=1, le=MOST_EDITS)
    """Candidates that are tested side by side in a round."""
    attempts: int = Field(default=2, ge=1)
    """Answers under each prompt at each scenario of a test."""
    looks: tuple[int, ...] = (8, 16, 32)
    """Scenarios after which a test may stop; fewer where fewer are held out."""
    alpha: float = Field(default=0.05, gt=0, lt=1)
    """The chance of keeping even one lesson that does not help, over all rounds."""
    margin: float = Field(default=0.02, ge=0)
    """How much worse a prompt without a lesson may be for the lesson to go."""
    guard_margin: float = Field(default=0.05, ge=0)
    """How much worse a new prompt may be by a guard, such as a verifier."""
    most_longer: float = Field(default=0.2, ge=0)
    """By what share answers may grow under a new prompt, beyond five words."""
    least_reliability: float = Field(default=0.6, ge=0, le=1)
    """Groups that the judge reads less reliably teach nothing."""
    least_gap: float = Field(default=0.1, gt=0)
    """Groups whose best and worst answer are closer teach nothing."""
    least_support: int = Field(default=2, ge=1)
    """In how many groups a complaint must be made."""
    pool: int = Field(default=8, ge=1)
    """Versions that are kept to go on from."""
    check_contradictions: bool = True
    """Ask the reflection model whether a lesson contradicts the spec before it is tested."""

    @model_validator(mode="after")
    def _rising(self) -> Self:
        if not self.looks or any(b <= a for a, b in zip([0, *self.looks], self.looks, strict=False)):
            raise ValueError(
                f"looks are {list(self.looks)}; they are numbers of scenarios that rise, such as 8, 16, 32"
            )
        return self

    @property
    def bounds(self) -> Bounds:
        """For the acceptance test."""
        return Bounds(self.margin, self.guard_margin, self.most_longer)

    @property
    def half_of_tests(self) -> int:
        """A quarter of those that would fill every round: they have half of alpha for themselves.

        Tests that accept hand their level on, so it is the first ones that need it.
        """
        return max(1, self.rounds * self.edits // 4)

    def looks_at(self, scenarios: int) -> list[int]:
        """The looks of a test on so many scenarios."""
        below = [look for look in self.looks[:-1] if look < scenarios]
        return [*below, min(scenarios, self.looks[-1])]
