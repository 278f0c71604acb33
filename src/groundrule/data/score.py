"""Score: what a scorer says about one trajectory. "No score" is a state of its own, never 0."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Score(BaseModel):
    """A value, or the reason why there is none."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    value: float | None = Field(default=None, allow_inf_nan=False)
    """Higher is better; judges use 0..1. None: not scored, `reason` says why."""
    reason: str | None = None
    """Why there is no value. None when there is one."""
    explanation: str = ""
    """What the scorer said about this trajectory."""
    parts: dict[str, float] = Field(default_factory=dict)
    """Named numbers behind the value (raw values, criteria, lengths)."""
    cost: float | None = None
    """US dollars paid for this score; None when unknown. A judge call is shared over its group."""

    @model_validator(mode="after")
    def _value_or_reason(self) -> Score:
        if self.value is None and not self.reason:
            raise ValueError("a Score without a value needs a reason")
        if self.value is not None and self.reason:
            raise ValueError("a Score has a value or a reason, not both")
        return self

    @classmethod
    def none(cls, reason: str, **more: Any) -> Score:
        """No score, because of `reason`."""
        return cls(value=None, reason=reason, **more)


class Scores(list[Score]):
    """One score per member, in group order, with what the scorer knows of the group as a whole.

    `metrics` become metrics of the group: `judge_reliability` (0..1, how much of the spread is not judge
    noise) and `judge_noise` (standard error of a score) reach the advantages; names that begin with
    `judge/` are for the reader.
    """

    def __init__(self, scores: Iterable[Score] = (), *, metrics: Mapping[str, float] | None = None) -> None:
        super().__init__(scores)
        self.metrics = dict(metrics or {})


def total_cost(costs: Iterable[float | None]) -> float | None:
    """US dollars; None as soon as one is unknown."""
    given = list(costs)
    known = [cost for cost in given if cost is not None]
    return sum(known) if len(known) == len(given) else None
