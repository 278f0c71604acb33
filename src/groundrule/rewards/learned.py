"""Rewards learned from preferences: a model that gives every conversation a number, as a scorer.

The number, the raw value, has no scale of its own: only differences between answers were learned. It is brought into
0..1 by sigmoid((raw - mean) / deviation), with mean and deviation over the answers that the model learned from: an
average answer gets 0.5, one that is a deviation better 0.73. The order never changes, and `parts` keep the raw value.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, pstdev
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

from groundrule._util.aio import on_model_thread
from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import Message, Tools
from groundrule.data.score import Score


class ValueScale(BaseModel):
    """Where raw values lie."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    mean: float = Field(default=0.0, allow_inf_nan=False)
    deviation: float = Field(default=1.0, gt=0, allow_inf_nan=False)

    @classmethod
    def of(cls, raw: Sequence[float]) -> ValueScale:
        """Of these values; where they are all alike the deviation is 1.

        Differences between prompts are part of the deviation, so that no prompt lies where the sigmoid is flat.
        """
        spread = pstdev(raw)
        return cls(mean=fmean(raw), deviation=spread if spread > 1e-6 else 1.0)

    def standard(self, raw: float) -> float:
        """How many deviations above the mean."""
        return (raw - self.mean) / self.deviation

    def unit(self, raw: float) -> float:
        """Into 0..1, monotonically."""
        return 0.5 * (1 + math.tanh(0.5 * self.standard(raw)))


@dataclass(frozen=True)
class Conversation:
    """Messages that end with what is valued: the agent's last turn."""

    messages: Sequence[Message]
    tools: Tools | None = None


@dataclass(frozen=True)
class Value:
    """What a model makes of a conversation."""

    raw: float
    tokens: int
    """Of the whole conversation, in the model's own tokens."""


class ValueModel(Protocol):
    """Says what conversations are worth."""

    @property
    def scale(self) -> ValueScale:
        """Where its raw values lie."""
        ...

    def values(self, conversations: Sequence[Conversation]) -> list[Value | str]:
        """In the order given; a text is the reason why there is no value."""
        ...


class LearnedReward:
    """A `Scorer` over a model of values. It reads the main conversation, in text, whoever sampled it."""

    def __init__(self, model: ValueModel) -> None:
        self.model = model

    async def score(self, group: TrajectoryGroup) -> list[Score]:
        """One score a member, alone: other members change nothing."""
        return await on_model_thread(self.score_now, group)

    def score_now(self, group: TrajectoryGroup) -> list[Score]:
        """The same, on the calling thread."""
        found = self.model.values([Conversation(t.messages(), t.tools) for t in group.trajectories])
        return [self._score(value) for value in found]

    def _score(self, value: Value | str) -> Score:
        if isinstance(value, str):
            return Score.none(value)
        if not math.isfinite(value.raw):
            return Score.none(f"the reward model's value is {value.raw}, which is no number")
        scale = self.model.scale
        return Score(
            value=scale.unit(value.raw),
            explanation=f"value {value.raw:+.3f}, {scale.standard(value.raw):+.2f} deviations from the mean",
            parts={"raw": value.raw, "tokens": float(value.tokens)},
            cost=0.0,
        )
