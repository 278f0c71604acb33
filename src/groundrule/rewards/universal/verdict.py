"""What the verifier makes of one answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from groundrule.data.score import Score

Layer = Literal["gate", "check", "reference", "rubric"]
"""Who decided: the gate before all layers, a program, a comparison with the reference, a list of criteria."""

LAYERS: tuple[Layer, ...] = get_args(Layer)[1:]
"""Those that can be chosen, from cheap to dear."""


@dataclass(frozen=True)
class Verdict:
    """A score with what it rests on, or the reason why there is none."""

    score: float | None
    reason: str | None = None
    """Why the verifier abstains; None where there is a score."""
    layer: Layer | None = None
    """The layer that decided, or the last one that was asked; None where no layer applies."""
    reliability: float | None = None
    """1.0 where a program decides. Of several readings by a judge, the share that agrees; None after a single one."""
    evidence: tuple[str, ...] = ()
    """The judge's quotes that do stand in the answer."""
    explanation: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)
    readings: tuple[float | None, ...] = ()
    """What each single reading alone would have given; empty where no judge was asked."""
    calls: int = 0
    cost_usd: float | None = 0.0

    @classmethod
    def abstain(
        cls,
        reason: str,
        layer: Layer | None = None,
        *,
        explanation: str = "",
        parts: Mapping[str, float] | None = None,
        readings: Sequence[float | None] = (),
        calls: int = 0,
        cost_usd: float | None = 0.0,
    ) -> Verdict:
        """No score."""
        return cls(
            None,
            reason,
            layer,
            explanation=explanation,
            parts=parts or {},
            readings=tuple(readings),
            calls=calls,
            cost_usd=cost_usd,
        )

    def as_score(self, copies: int = 1) -> Score:
        """As a scorer gives it; what it cost is shared by so many equal answers."""
        parts = dict(self.parts)
        if self.layer is not None:
            parts[f"layer/{self.layer}"] = 1.0
        if self.reliability is not None:
            parts["reliability"] = self.reliability
        quotes = "; ".join(repr(quote[:120]) for quote in self.evidence)
        said = self.explanation + (f" [{quotes}]" if quotes else "")
        cost = None if self.cost_usd is None else self.cost_usd / copies
        return Score(value=self.score, reason=self.reason, explanation=said, parts=parts, cost=cost)


def majority(votes: Sequence[bool | None], asked: int) -> bool | None:
    """What more than half of those that decided say; None where they are level, or half of those asked did not."""
    known = [vote for vote in votes if vote is not None]
    if 2 * len(known) <= asked or 2 * sum(known) == len(known):
        return None
    return 2 * sum(known) > len(known)
