"""Does the judge put answers into the order that is known?"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean

from groundrule._util.seed import derive
from groundrule.algorithms.bootstrap import middle_95
from groundrule.recipes.judge_eval.judged import JudgedGroup
from groundrule.rewards.suites.labels import Pair

DRAWS = 2000


@dataclass(frozen=True)
class Measure:
    """A number, and how sure it is."""

    value: float | None
    """None: nothing to measure it on."""
    low: float | None
    """Ends of the 95 % interval; None with fewer than two groups."""
    high: float | None
    count: int
    """Pairs or groups that it was measured on."""


@dataclass(frozen=True)
class Tally:
    """What one group contributes: `hits` of `count`."""

    cluster: str
    hits: float
    count: int


def ratio(tallies: Iterable[Tally]) -> Measure:
    """All hits over all counts, with the percentile interval of a bootstrap over groups (Efron 1979).

    Groups of one series are drawn together. The draws are seeded: the same results give the same interval.
    """
    by_cluster: dict[str, tuple[float, int]] = {}
    for tally in tallies:
        hits, count = by_cluster.get(tally.cluster, (0.0, 0))
        by_cluster[tally.cluster] = hits + tally.hits, count + tally.count
    clusters = [(hits, count) for hits, count in by_cluster.values() if count]
    total = sum(count for _, count in clusters)
    if not total:
        return Measure(None, None, None, 0)
    value = sum(hits for hits, _ in clusters) / total
    if len(clusters) < 2:
        return Measure(value, None, None, total)
    rng = random.Random(derive("interval", len(clusters)))
    low, high = middle_95(_resampled(clusters, rng) for _ in range(DRAWS))
    return Measure(value, low, high, total)


def _resampled(clusters: Sequence[tuple[float, int]], rng: random.Random) -> float:
    drawn = rng.choices(clusters, k=len(clusters))
    return sum(hits for hits, _ in drawn) / sum(count for _, count in drawn)


def pair_accuracy(judged: Sequence[JudgedGroup]) -> Measure:
    """The share of ordered pairs that the judge orders rightly, 0..1; a tie counts half, chance is 0.5."""
    return ratio(tally_pairs(group, group.known.known.ordered, half_for_ties) for group in judged)


def not_above(judged: Sequence[JudgedGroup], pairs_of: Callable[[JudgedGroup], Sequence[Pair]]) -> Measure:
    """The share of pairs whose first member does not score above the second."""
    return ratio(tally_pairs(group, pairs_of(group), lambda a, b: float(a <= b)) for group in judged)


def tally_pairs(group: JudgedGroup, pairs: Sequence[Pair], credit: Callable[[float, float], float]) -> Tally:
    """Over the pairs of which both members have a score."""
    credits = [
        credit(first, second)
        for i, j in pairs
        if (first := group.values[i]) is not None and (second := group.values[j]) is not None
    ]
    return Tally(group.cluster, sum(credits), len(credits))


def half_for_ties(better: float, worse: float) -> float:
    """What a judge earns on one pair: 1 for the right order, 0.5 for a tie, 0 for the wrong order."""
    return 0.5 if better == worse else float(better > worse)


def mean_tau(judged: Sequence[JudgedGroup]) -> Measure:
    """Kendall's tau-b with the known order, averaged over the groups that have one, -1..1."""
    taus = [(group.cluster, tau_b(group.known.known.ordered, group.values)) for group in judged]
    return ratio(Tally(cluster, tau, 1) for cluster, tau in taus if tau is not None)


def tau_b(ordered: Sequence[Pair], values: Sequence[float | None]) -> float | None:
    """Kendall's tau-b (1945) over pairs that the known order tells apart; None without any.

    (right - wrong) / sqrt(pairs * pairs that the judge tells apart). Pairs tied in the known order are left
    out instead of counting as ties of one side, so full agreement is 1. A judge that ties all has 0.
    """
    gaps = [
        better - worse
        for i, j in ordered
        if (better := values[i]) is not None and (worse := values[j]) is not None
    ]
    if not gaps:
        return None
    told_apart = sum(gap != 0 for gap in gaps)
    signs = sum((gap > 0) - (gap < 0) for gap in gaps)
    return signs / math.sqrt(len(gaps) * told_apart) if told_apart else 0.0


@dataclass(frozen=True)
class AreaResult:
    """One area of a suite."""

    groups: int
    pairs: Measure


def by_area(judged: Sequence[JudgedGroup]) -> dict[str, AreaResult]:
    """Pair accuracy by area, in the order in which areas appear; groups without an area are in none."""
    areas: dict[str, list[JudgedGroup]] = {}
    for group in judged:
        if group.known.area is not None:
            areas.setdefault(group.known.area, []).append(group)
    return {name: AreaResult(len(groups), pair_accuracy(groups)) for name, groups in areas.items()}


def order_flips(judged: Sequence[JudgedGroup]) -> Measure:
    """The share of pairs that turn round with the system prompt and that the judge has right both times.

    Tossing a coin gives 0.25; a judge that ignores the system prompt has 0.
    """
    return ratio(_turned(a, b) for a, b in in_series(judged))


def _turned(a: JudgedGroup, b: JudgedGroup) -> Tally:
    both: list[float] = []
    for i, j in turned_pairs(a, b):
        gaps = _gap(a, i), _gap(b, j)
        if gaps[0] is not None and gaps[1] is not None:
            both.append(float(gaps[0] > 0 and gaps[1] > 0))
    return Tally(a.cluster, sum(both), len(both))


def turned_pairs(a: JudgedGroup, b: JudgedGroup) -> list[tuple[Pair, Pair]]:
    """The ordered pairs of `a` whose answers stand in the opposite order in `b`, with that pair of `b`."""
    keys = a.known.own_keys()
    place = {key: i for i, key in enumerate(b.known.own_keys())}
    opposite = set(b.known.known.ordered)
    mirrored = [((i, j), (place.get(keys[j]), place.get(keys[i]))) for i, j in a.known.known.ordered]
    return [
        (pair, (x, y)) for pair, (x, y) in mirrored if x is not None and (x, y) in opposite and y is not None
    ]


def in_series(judged: Sequence[JudgedGroup]) -> list[tuple[JudgedGroup, JudgedGroup]]:
    """Every two groups of one series."""
    series: dict[str, list[JudgedGroup]] = {}
    for group in judged:
        if group.known.series is not None:
            series.setdefault(group.known.series, []).append(group)
    return [pair for groups in series.values() for pair in combinations(groups, 2)]


@dataclass(frozen=True)
class Gaps:
    """How far apart the judge puts members, in score units."""

    tied: float | None
    """Mean distance of equally good members."""
    ordered: float | None
    """Mean of better minus worse."""


def gaps(judged: Sequence[JudgedGroup]) -> Gaps:
    """What a tie is worth to the judge, and what a difference."""
    tied = [_gap(group, pair) for group in judged for pair in group.known.known.tied]
    ordered = [_gap(group, pair) for group in judged for pair in group.known.known.ordered]
    return Gaps(
        mean_of(None if gap is None else abs(gap) for gap in tied),
        mean_of(ordered),
    )


def _gap(group: JudgedGroup, pair: Pair) -> float | None:
    first, second = group.values[pair[0]], group.values[pair[1]]
    return None if first is None or second is None else first - second


def mean_of(values: Iterable[float | None]) -> float | None:
    """Of the values that are known; None where none is."""
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
