"""What a learner of prompts knows from round to round, and a run folder keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from groundrule.algorithms.error_budget import ErrorBudget
from groundrule.prompt_learning.edits import Edit
from groundrule.prompt_learning.playbook import LessonIds
from groundrule.prompt_learning.settings import PromptSettings
from groundrule.prompt_learning.versions import Pool


@dataclass(frozen=True)
class Proposed:
    """An edit on its way into a test."""

    edit: Edit
    evidence: tuple[Mapping[str, Any], ...]
    """The contrasts that it names."""
    tests: int = 0
    """How often it has been tested to the end."""

    def to_dict(self) -> dict[str, Any]:
        """For files."""
        evidence = [dict(one) for one in self.evidence]
        return {"edit": self.edit.to_dict(), "evidence": evidence, "tests": self.tests}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Proposed:
        """From a file."""
        return cls(Edit.from_dict(record["edit"]), tuple(record["evidence"]), record["tests"])


@dataclass
class LearnerState:
    """Everything that a learner knows and a run folder keeps."""

    budget: ErrorBudget
    pool: Pool = field(default_factory=Pool)
    ids: LessonIds = field(default_factory=LessonIds)
    carried: list[Proposed] = field(default_factory=list)
    """Edits that are tested first in the next round: nearly shown to help, better than another prompt only, or without
    a place so far."""
    tried: list[str] = field(default_factory=list)
    """The words of each edit that did not help, once for every time that it was proposed."""
    round: int = 0
    parent: int = 0
    """The version that the next round's answers are given under, and its edits start from."""

    @classmethod
    def at_start(cls, settings: PromptSettings) -> LearnerState:
        """Before the first round, from a playbook without lessons."""
        return cls(ErrorBudget(settings.alpha, settings.half_of_tests), Pool(size=settings.pool))

    def to_dict(self) -> dict[str, Any]:
        """For files."""
        return {
            "budget": vars(self.budget).copy(),
            "pool": self.pool.to_dict(),
            "ids": self.ids.given,
            "carried": [one.to_dict() for one in self.carried],
            "tried": list(self.tried),
            "round": self.round,
            "parent": self.parent,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> LearnerState:
        """From a file."""
        return cls(
            budget=ErrorBudget(**record["budget"]),
            pool=Pool.from_dict(record["pool"]),
            ids=LessonIds(record["ids"]),
            carried=[Proposed.from_dict(one) for one in record["carried"]],
            tried=list(record["tried"]),
            round=record["round"],
            parent=record["parent"],
        )
