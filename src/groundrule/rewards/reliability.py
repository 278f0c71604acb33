"""How far a judge's scores can be trusted, measured from the scores themselves.

Everything here works on the scores of one group read several times (or by several judges). What all
readings get wrong in the same way cannot be seen in them: these numbers speak of the noise, not of the bias,
and are upper bounds of what a judge is worth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, stdev, variance

PassScores = Sequence[Sequence[float | None]]
"""[pass][item]; None where a pass has no score for the item."""

_NOTHING = 1e-12
"""Variances (and gaps) below this are rounding."""


def reliability(passes: PassScores) -> float | None:
    """The share of the spread between the items' mean scores that is not noise, 0..1.

    The intraclass correlation of the mean, ICC(1,K) of Shrout and Fleiss (1979): b / (b + w), where w is the
    noise variance of a mean over passes and b = max(0, variance of the means - w). Items that miss passes
    enter with the passes they have. None when fewer than two items have two scores, because then nothing was
    measured. 1.0 when all scores are equal: no reading contradicts another, and there is no spread to shrink.
    """
    items = _by_item(passes)
    if sum(len(scores) > 1 for scores in items) < 2:
        return None
    noise = _noise_of_mean(items)
    total = max(variance([fmean(scores) for scores in items]), noise)
    return (total - noise) / total if total > _NOTHING else 1.0


def about_their_means(passes: PassScores) -> list[list[float | None]]:
    """Each pass moved to mean 0: a reading that is harsher throughout disagrees with none of the differences.

    With it the two measures beside this one become those of consistency, ICC(3,K), but for a slightly too
    large number of degrees of freedom.
    """
    return [_moved(scores) for scores in passes]


def noise_of_mean(passes: PassScores) -> float | None:
    """The standard error of an item's mean score, pooled over the items; None where no item has two scores."""
    items = _by_item(passes)
    return math.sqrt(_noise_of_mean(items)) if any(len(scores) > 1 for scores in items) else None


def spread(passes: PassScores) -> list[float | None]:
    """Each item's standard deviation over the passes (divided by passes - 1); None with one score or none."""
    columns = [[score for score in column if score is not None] for column in zip(*passes, strict=True)]
    return [stdev(scores) if len(scores) > 1 else None for scores in columns]


def flip_rate(
    first: Sequence[float | None], second: Sequence[float | None], *, tie: float = 0.0
) -> float | None:
    """The share of pairs that two readings order differently, 0..1; a coin gives 0.5.

    Pairs whose scores differ by `tie` or less in either reading do not count. None without countable pairs.
    """
    scored = [(a, b) for a, b in zip(first, second, strict=True) if a is not None and b is not None]
    gaps = [(x[0] - y[0], x[1] - y[1]) for x, y in combinations(scored, 2)]
    flips = [a * b < 0 for a, b in gaps if min(abs(a), abs(b)) > tie + _NOTHING]
    return fmean(flips) if flips else None


@dataclass(frozen=True)
class SlotEffect:
    """How much a place in the order shown is worth to a judge."""

    slope: float
    """Score of the first place minus score of the last, other things equal; positive favours the first."""
    stderr: float
    p_value: float
    """Two-sided, by the normal approximation."""
    calls: int


def slot_effect(calls: Sequence[Sequence[float | None]]) -> SlotEffect | None:
    """The effect of the place, from the scores of each call in the order shown.

    A straight line through the scores, centred in each call, over the places from 1/2 (first) to -1/2 (last).
    Meaningful where the order was drawn at random. None when the calls leave no degree of freedom.
    """
    centred = [points for points in map(_centred, calls) if points]
    points = [point for call in centred for point in call]
    freedom = len(points) - len(centred) - 1
    if freedom < 1:
        return None
    weight = sum(x * x for x, _ in points)
    slope = sum(x * y for x, y in points) / weight
    error = math.sqrt(sum((y - slope * x) ** 2 for x, y in points) / freedom / weight)
    p_value = math.erfc(abs(slope) / error / math.sqrt(2)) if error else float(not slope)
    return SlotEffect(slope, error, p_value, len(centred))


def krippendorff_alpha(ratings: PassScores) -> float | None:
    """Agreement of raters on an interval scale, [rater][item]: 1 is full, 0 is what chance would give.

    Krippendorff (2011), 1 - observed / expected squared difference, over items with two ratings or more.
    None where there are none, or where all ratings are equal.
    """
    items = [scores for scores in _by_item(ratings) if len(scores) > 1]
    pooled = [score for scores in items for score in scores]
    if len(pooled) < 2:
        return None
    # The mean squared difference of all ordered pairs is twice the sample variance.
    observed = sum(len(scores) * variance(scores) for scores in items) / len(pooled)
    expected = variance(pooled)
    return 1.0 - observed / expected if expected > _NOTHING else None


def _moved(scores: Sequence[float | None]) -> list[float | None]:
    known = [score for score in scores if score is not None]
    return [None if score is None else score - fmean(known) for score in scores]


def _by_item(passes: PassScores) -> list[list[float]]:
    """The scores that each item has; items without any are left out."""
    columns = ([score for score in column if score is not None] for column in zip(*passes, strict=True))
    return [scores for scores in columns if scores]


def _noise_of_mean(items: Sequence[Sequence[float]]) -> float:
    """The mean noise variance of the items' means, from the variance within items pooled over all of them."""
    within = sum((score - fmean(scores)) ** 2 for scores in items for score in scores)
    freedom = sum(len(scores) - 1 for scores in items)
    return within / freedom * fmean(1 / len(scores) for scores in items)


def _centred(call: Sequence[float | None]) -> list[tuple[float, float]]:
    """(place, score) of one call, both around their mean in it; nothing for a call with a single score."""
    points = [(0.5 - at / max(len(call) - 1, 1), score) for at, score in enumerate(call) if score is not None]
    if len(points) < 2:
        return []
    place, score = fmean(x for x, _ in points), fmean(y for _, y in points)
    return [(x - place, y - score) for x, y in points]
