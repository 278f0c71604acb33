"""Join calls that each judged a part of a large group into one scale.

Calls stretch and shift their scores, so what an item got depends on the company it was judged in. Compared
are therefore only items of the same call: soft Bradley-Terry over all pairs that were shown together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from operator import mul
from statistics import fmean, variance

Chunk = Mapping[int, float]
"""The scores of one call by item."""

SHARPNESS = 0.15
"""A gap of this size between two scores counts as odds of e : 1 that the higher one is better."""

PRIOR = 0.5
"""How strongly a strength is held to the item's mean score; see `merge`."""

_STEPS = 50
_LONGEST_STEP = 3.0
_CLOSE = 1e-4
"""After a last step of this length Newton's method is off by about its square."""
_NOTHING = 1e-12


def merge(n: int, chunks: Sequence[Chunk]) -> list[float | None]:
    """One value per item 0..n-1 on the judge's scale, 0..1; None for items in no chunk.

    Each pair of a chunk is a soft win, w = sigmoid(gap / 0.15). The strengths t maximise
    sum w log sigmoid(t_i - t_j) - 0.5/2 |t - m|^2 with m the item's mean raw score / 0.15, and the value is
    0.15 t. Plain Bradley-Terry holds t to 0 instead: then extremes shrink, gaps must be stretched back, and
    parts that share no item stand at the same level. Held to the mean scores, a single call comes back as it
    was, gaps keep their size, an item that was judged alone keeps its score, and unconnected parts keep
    their levels. `benchmarks/judge_signal.py` compares the two.

    Were a value to leave 0..1, all of them are drawn towards their mean until they fit, so that neither
    order nor proportions change.
    """
    levels = _mean_scores(n, chunks)
    prior = [0.0 if level is None else level / SHARPNESS for level in levels]
    found = strengths(prior, chunks)
    values = {i: SHARPNESS * t for i, t in enumerate(found) if levels[i] is not None}
    fitting = dict(zip(values, drawn_in(list(values.values())), strict=True))
    return [fitting.get(i) for i in range(n)]


def strengths(prior: Sequence[float], chunks: Sequence[Chunk], *, weight: float = PRIOR) -> list[float]:
    """Bradley-Terry strengths in log odds, held to `prior` with `weight`; Newton's method from `prior`."""
    pairs = _pairs(chunks)
    found = list(prior)
    for _ in range(_STEPS):
        gradient = [weight * (p - t) for p, t in zip(prior, found, strict=True)]
        curvature = [[0.0] * len(found) for _ in found]
        for i in range(len(found)):
            curvature[i][i] = weight
        for (i, j), (won, count) in pairs.items():
            chance = sigmoid(found[i] - found[j])
            gradient[i] += won - count * chance
            gradient[j] -= won - count * chance
            bend = count * chance * (1 - chance)
            curvature[i][i] += bend
            curvature[j][j] += bend
            curvature[j][i] -= bend  # Only the lower triangle is read, and i < j.
        step = _solved(curvature, gradient)
        longest = max(map(abs, step), default=0.0)
        # Far from the optimum the curvature is too small, and a full step would overshoot.
        held = min(1.0, _LONGEST_STEP / longest) if longest else 1.0
        found = [t + held * s for t, s in zip(found, step, strict=True)]
        if longest < _CLOSE:
            break
    return found


def merge_reliability(n: int, chunks: Sequence[Chunk], values: Sequence[float | None]) -> float | None:
    """The share of the spread of merged values that is not noise, 0..1; None where that cannot be measured.

    In each chunk a score is taken as gain x value + offset + noise, with one gain for all: merging draws
    values together. Scores beyond one offset a chunk inform about the items; what they leave beyond one value
    an item is the freedom by which the noise is measured. One reading of the group leaves none. 1.0 when no
    chunk shows a difference.
    """
    if len(values) != n:
        raise ValueError(f"{len(values)} values for a group of {n}")
    known = [value for value in values if value is not None]
    points = [point for chunk in chunks for point in _around_mean(chunk, values)]
    informing = len(points) - sum(map(bool, chunks))
    needed = len(known) - _parts(chunks)
    if informing <= needed or needed < 1:
        return None
    reach = sum(value * value for value, _ in points)
    if reach < _NOTHING:
        return 1.0
    gain = sum(value * score for value, score in points) / reach
    left = sum((score - gain * value) ** 2 for value, score in points) / (informing - needed)
    noise = left * needed / informing
    total = max(gain * gain * variance(known), noise)
    return (total - noise) / total if total > _NOTHING else 1.0


def drawn_in(values: Sequence[float]) -> list[float]:
    """The values if all lie in 0..1; otherwise drawn towards their mean, in proportion, until they do."""
    if not values or (min(values) >= 0.0 and max(values) <= 1.0):
        return list(values)
    middle = min(max(fmean(values), 0.0), 1.0)
    above, below = max(values) - middle, middle - min(values)
    share = min(
        [1.0] + [room / reach for room, reach in ((1.0 - middle, above), (middle, below)) if reach > room]
    )
    # Rounding may leave the last digit outside.
    return [min(max(middle + share * (value - middle), 0.0), 1.0) for value in values]


def sigmoid(x: float) -> float:
    """1 / (1 + e^-x), for any x."""
    if x >= 0:
        return 1.0 / (1.0 + math.exp(-x))
    power = math.exp(x)
    return power / (1.0 + power)


def _pairs(chunks: Sequence[Chunk]) -> dict[tuple[int, int], tuple[float, int]]:
    """By pair i < j: how much i won over j, and out of how many meetings."""
    pairs: dict[tuple[int, int], tuple[float, int]] = {}
    for chunk in chunks:
        for (i, first), (j, second) in combinations(sorted(chunk.items()), 2):
            won, count = pairs.get((i, j), (0.0, 0))
            pairs[i, j] = (won + sigmoid((first - second) / SHARPNESS), count + 1)
    return pairs


def _mean_scores(n: int, chunks: Sequence[Chunk]) -> list[float | None]:
    scores: list[list[float]] = [[] for _ in range(n)]
    for chunk in chunks:
        for item, score in chunk.items():
            scores[item].append(score)
    return [fmean(found) if found else None for found in scores]


def _around_mean(chunk: Chunk, values: Sequence[float | None]) -> list[tuple[float, float]]:
    """(value, score) of a chunk's items, both around their mean in the chunk."""
    points = [(value, score) for item, score in chunk.items() if (value := values[item]) is not None]
    if not points:
        return []
    middle, mean = fmean(value for value, _ in points), fmean(score for _, score in points)
    return [(value - middle, score - mean) for value, score in points]


def _parts(chunks: Sequence[Chunk]) -> int:
    """How many parts the chunks fall into that share no item."""
    parts: list[set[int]] = []
    for chunk in filter(None, chunks):
        touching = [part for part in parts if part & chunk.keys()]
        parts = [part for part in parts if not part & chunk.keys()]
        parts.append(set(chunk).union(*touching))
    return len(parts)


def _solved(matrix: Sequence[Sequence[float]], right: Sequence[float]) -> list[float]:
    """x of matrix x = right by Cholesky's factors; symmetric, positive definite, lower triangle given."""
    rows: list[list[float]] = []
    forward: list[float] = []
    for given, target in zip(matrix, right, strict=True):
        row: list[float] = []
        for entry, above in zip(given, rows, strict=False):
            row.append((entry - sum(map(mul, row, above))) / above[-1])
        pivot = math.sqrt(given[len(row)] - sum(map(mul, row, row)))
        forward.append((target - sum(map(mul, row, forward))) / pivot)
        rows.append([*row, pivot])
    found = [0.0] * len(rows)
    for i in reversed(range(len(rows))):
        found[i] = forward[i] / rows[i][i]
        for j in range(i):
            forward[j] -= rows[i][j] * found[i]
    return found
