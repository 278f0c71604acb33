"""How well values order answers that somebody else has ranked: accuracy, by margin; calibration; length.

Every measure counts pairs of different tiers, each once; intervals are over prompts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from groundrule.algorithms.agreement import Measured, bootstrap
from groundrule.algorithms.ranking_loss import Comparison


@dataclass(frozen=True)
class ValuedRanking:
    """The values of the answers of one ranking, and which of them are said to be better."""

    prompt: str
    """Equal for rankings of the same prompt."""
    values: tuple[float, ...]
    lengths: tuple[int, ...]
    """Of the answers, in any unit."""
    comparisons: tuple[Comparison, ...]

    def gaps(self) -> list[float]:
        """By how much each chosen answer's value is above the rejected one's."""
        return [self.values[c.chosen] - self.values[c.rejected] for c in self.comparisons]


@dataclass(frozen=True)
class MarginBin:
    """Pairs with a margin from `low` up to below `high`; in the last bin `high` is the largest margin."""

    low: float
    high: float
    pairs: int
    accuracy: Measured


@dataclass(frozen=True)
class CalibrationBin:
    """Pairs by the probability that the model gives to the answer that it prefers."""

    low: float
    high: float
    pairs: int
    confidence: float
    """Its mean in the bin."""
    accuracy: float


@dataclass(frozen=True)
class Calibration:
    """Whether sigmoid(difference) is the probability that it says it is."""

    error: float
    """Expected calibration error; 0 is perfect."""
    bins: list[CalibrationBin]
    """Those that are not empty."""


@dataclass(frozen=True)
class ValueLength:
    """Whether the values follow the length of the answers."""

    correlation: Measured
    """Of value and length among the answers to one prompt; -1 to 1."""
    longer_is_better: Measured
    """The accuracy of the rule that prefers the longer answer, on the same pairs."""


@dataclass(frozen=True)
class RewardEvaluation:
    """Everything that is measured."""

    rankings: int
    prompts: int
    pairs: int
    accuracy: Measured
    """The share of pairs whose chosen answer has the higher value; equal values count half. Chance: 0.5."""
    by_margin: list[MarginBin]
    """Of the pairs that have a margin; empty where none has."""
    calibration: Calibration
    length: ValueLength

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def evaluate_values(rankings: Sequence[ValuedRanking], *, margin_bins: int = 4) -> RewardEvaluation:
    """All measures. Raises `ValueError` where no ranking puts one answer above another."""
    taught = [ranking for ranking in rankings if ranking.comparisons]
    if not taught:
        raise ValueError(f"{len(rankings)} rankings, and none puts one answer above another")
    return RewardEvaluation(
        rankings=len(taught),
        prompts=len({ranking.prompt for ranking in taught}),
        pairs=sum(len(ranking.comparisons) for ranking in taught),
        accuracy=pair_accuracy(taught),
        by_margin=accuracy_by_margin(taught, bins=margin_bins),
        calibration=calibration([gap for ranking in taught for gap in ranking.gaps()]),
        length=ValueLength(length_correlation(taught), longer_is_better(taught)),
    )


def pair_accuracy(rankings: Sequence[ValuedRanking]) -> Measured:
    """The share of pairs whose chosen answer has the higher value; equal values count half."""
    return _share(rankings, lambda ranking: [(_right(gap), 1) for gap in ranking.gaps()])


def accuracy_by_margin(rankings: Sequence[ValuedRanking], *, bins: int = 4) -> list[MarginBin]:
    """The same for pairs of small and large margins, in at most so many bins of about equally many pairs.

    Equal margins are never parted. A model that has learned the ranking is better where the margin is larger.
    """
    margins = sorted(c.margin for r in rankings for c in r.comparisons if c.margin is not None)
    if not margins:
        return []
    edges = sorted({margins[i * len(margins) // bins] for i in range(bins)})
    found = []
    for low, high in zip(edges, [*edges[1:], math.inf], strict=True):
        inside = [low <= margin < high for margin in margins]
        found.append(
            MarginBin(
                low, margins[-1] if high == math.inf else high, sum(inside), _within(rankings, low, high)
            )
        )
    return found


def calibration(gaps: Sequence[float], *, bins: int = 10) -> Calibration:
    """The expected calibration error of p = sigmoid(|difference|), the probability of the preferred answer.

    sum over bins of pairs / all pairs * |accuracy - mean confidence| (Guo et al. 2017, eq. 3), in bins of equal width
    over 0.5..1, which is where the confidence of the better of two lies. A pair of equal values is half right.
    """
    width = 0.5 / bins
    members: dict[int, list[tuple[float, float]]] = {}
    for gap in gaps:
        confidence = 1 / (1 + math.exp(-abs(gap)))
        place = min(bins - 1, int((confidence - 0.5) / width))
        members.setdefault(place, []).append((confidence, _right(gap)))
    found = [
        CalibrationBin(
            low=0.5 + width * place,
            high=0.5 + width * (place + 1),
            pairs=len(inside),
            confidence=fmean(confidence for confidence, _ in inside),
            accuracy=fmean(right for _, right in inside),
        )
        for place, inside in sorted(members.items())
    ]
    error = sum(b.pairs * abs(b.accuracy - b.confidence) for b in found) / len(gaps)
    return Calibration(error, found)


def length_correlation(rankings: Sequence[ValuedRanking]) -> Measured:
    """Pearson's correlation of value and length, both less their mean over the answers of the ranking.

    What makes one prompt's answers longer and better than another's is no bias, so it is taken out. None where all
    values, or all lengths, are alike.
    """
    return bootstrap(_by_prompt(rankings, _products), _correlation)


def longer_is_better(rankings: Sequence[ValuedRanking]) -> Measured:
    """The share of pairs whose chosen answer is the longer one; equal lengths count half."""
    return _share(
        rankings,
        lambda r: [(_right(r.lengths[c.chosen] - r.lengths[c.rejected]), 1) for c in r.comparisons],
    )


Sums = tuple[float, ...]


def _right(gap: float) -> float:
    return 0.5 if gap == 0 else float(gap > 0)


def _within(rankings: Sequence[ValuedRanking], low: float, high: float) -> Measured:
    def counted(ranking: ValuedRanking) -> list[Sums]:
        pairs = zip(ranking.comparisons, ranking.gaps(), strict=True)
        return [(_right(gap), 1) for c, gap in pairs if c.margin is not None and low <= c.margin < high]

    return _share(rankings, counted)


def _share(rankings: Sequence[ValuedRanking], counted: Callable[[ValuedRanking], list[Sums]]) -> Measured:
    def share(drawn: Sequence[Sums]) -> float | None:
        pairs = sum(count for _, count in drawn)
        return sum(right for right, _ in drawn) / pairs if pairs else None

    return bootstrap(_by_prompt(rankings, counted), share)


def _by_prompt(
    rankings: Sequence[ValuedRanking], counted: Callable[[ValuedRanking], list[Sums]]
) -> list[Sums]:
    """What is counted, added up over each prompt; prompts without anything are left out."""
    found: dict[str, list[Sums]] = {}
    for ranking in rankings:
        found.setdefault(ranking.prompt, []).extend(counted(ranking))
    return [tuple(map(sum, zip(*rows, strict=True))) for rows in found.values() if rows]


def _products(ranking: ValuedRanking) -> list[Sums]:
    value, length = fmean(ranking.values), fmean(ranking.lengths)
    pairs = zip(ranking.values, ranking.lengths, strict=True)
    off = [(v - value, n - length) for v, n in pairs]
    return [(v * n, v * v, n * n) for v, n in off]


def _correlation(drawn: Sequence[Sums]) -> float | None:
    both, values, lengths = (sum(column) for column in zip(*drawn, strict=True))
    return both / math.sqrt(values * lengths) if values * lengths > 0 else None
