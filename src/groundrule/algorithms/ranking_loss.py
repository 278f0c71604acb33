"""The loss of a reward model on one ranking of K answers, whose values were computed together.

A ranking counts once, however many pairs are in it: its loss is the mean over its pairs (Ouyang et al. 2022, eq. 1:
all K(K-1)/2 pairs of a prompt in one batch element), or over its choices for Plackett-Luce.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Self

import torch
from pydantic import BaseModel, ConfigDict, Field, model_validator

from groundrule.algorithms.preference_loss import bradley_terry_loss, plackett_luce_loss


class RankingLossConfig(BaseModel):
    """Which loss, and what else of a ranking counts."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["bradley-terry", "plackett-luce"] = "bradley-terry"
    """`bradley-terry` compares every two answers; `plackett-luce` draws the best, then the best of the rest."""
    margin_weight: float = Field(default=0.0, ge=0)
    """By how much two values must differ for each unit of the pair's margin (Touvron et al. 2023, eq. 2)."""
    centring: float = Field(default=0.01, ge=0)
    """Weight of the mean of (r_chosen + r_rejected)^2 over pairs, which keeps values around 0."""

    @model_validator(mode="after")
    def _margins_belong_to_pairs(self) -> Self:
        if self.margin_weight and self.kind != "bradley-terry":
            raise ValueError(
                f"margin_weight is {self.margin_weight}, but {self.kind} compares no pairs that a margin could "
                "belong to; set it to 0, or use 'bradley-terry'"
            )
        return self


@dataclass(frozen=True)
class Comparison:
    """Answer number `chosen` of a ranking is better than number `rejected`."""

    chosen: int
    rejected: int
    margin: float | None = None


def ranking_loss(
    values: torch.Tensor,
    tiers: Sequence[Sequence[int]],
    comparisons: Sequence[Comparison],
    *,
    certainty: float,
    config: RankingLossConfig,
) -> torch.Tensor:
    """The loss of the values of all answers, (K,) -> (). `comparisons` are all pairs of different tiers.

    `certainty` is the probability that the order is right. Pairs take it as a soft label. Plackett-Luce has none in
    the literature; here the rest of it counts the order turned round, which for two answers is the same.
    """
    chosen = values[[c.chosen for c in comparisons]]
    rejected = values[[c.rejected for c in comparisons]]
    if config.kind == "bradley-terry":
        margins = config.margin_weight * values.new_tensor([c.margin or 0.0 for c in comparisons])
        return bradley_terry_loss(
            chosen, rejected, margin=margins, centring=config.centring, certainty=certainty
        )
    loss = certainty * plackett_luce_loss(values, tiers)
    if certainty < 1:
        loss = loss + (1 - certainty) * plackett_luce_loss(values, tiers[::-1])
    return loss + config.centring * (chosen + rejected).square().mean()


def share_right(values: Sequence[float], comparisons: Sequence[Comparison]) -> float:
    """The share of pairs whose chosen answer has the higher value; equal values count half."""
    gaps = [values[c.chosen] - values[c.rejected] for c in comparisons]
    return sum(0.5 if gap == 0 else float(gap > 0) for gap in gaps) / len(gaps)
