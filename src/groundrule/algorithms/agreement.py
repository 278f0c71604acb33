"""How far annotators agree about pairs of answers.

Each of two answers is better, or they are tied: three outcomes, 0 (the second is better), 1 (tied) and 2 (the first
is better). Which answer is called the first says nothing, so where a measure asks how often each outcome is given,
every comparison is counted once in each direction, with half the weight.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import TypeVar

from groundrule._util.seed import derive
from groundrule.algorithms.bootstrap import middle_95

SECOND, TIE, FIRST = 0, 1, 2
DRAWS = 2000
LEAST_PROMPTS = 5
"""Below, an interval would say nothing."""

Comparison = tuple[str, str]
"""The two answers, the first one first; always in the same order."""
Outcomes = Mapping[Comparison, int]
"""What one annotator says about the answers to one prompt."""
Table = Sequence[Sequence[float]]
T = TypeVar("T")


@dataclass(frozen=True)
class Measured:
    """A measure, and the 95 % interval of a bootstrap over prompts."""

    value: float | None
    """None: it is not defined on this data."""
    low: float | None = None
    """Ends of the interval; None with too few prompts."""
    high: float | None = None


@dataclass(frozen=True)
class Agreement:
    """Of the annotators of prompts that two or more of them judged."""

    annotators: int
    prompts: int
    comparisons: int
    """Comparisons that two annotators both made; three annotators of one pair make three."""
    both_order: int
    """Those in which neither says that the answers are tied."""
    same_order: Measured
    """The share of `both_order` in which both prefer the same answer. Chance: 0.5."""
    tau_b: Measured
    """Kendall's tau-b of two annotators on one prompt, averaged."""
    kappa: Measured | None
    """Cohen's kappa of the three outcomes, with exactly two annotators."""
    alpha: Measured | None
    """Krippendorff's ordinal alpha of the three outcomes, with three or more."""


def agreement(prompts: Sequence[Mapping[str, Outcomes]]) -> Agreement | None:
    """From what each annotator says about each prompt. None where no two annotators made the same comparison."""
    parts = [part for part in map(_part, prompts) if part.comparisons]
    names = sorted({name for part in parts for name in part.annotators})
    if not parts:
        return None
    for_two, for_more = len(names) == 2, len(names) > 2
    return Agreement(
        annotators=len(names),
        prompts=len(parts),
        comparisons=sum(part.comparisons for part in parts),
        both_order=sum(part.both_order for part in parts),
        same_order=bootstrap(parts, lambda drawn: _ratio([(p.same_order, p.both_order) for p in drawn])),
        tau_b=bootstrap(parts, lambda drawn: _ratio([(sum(p.taus), len(p.taus)) for p in drawn])),
        kappa=bootstrap(parts, lambda drawn: cohen_kappa(_sum([p.two_sided for p in drawn])))
        if for_two
        else None,
        alpha=bootstrap(parts, lambda drawn: ordinal_alpha(_sum([p.coincidences for p in drawn])))
        if for_more
        else None,
    )


def tau_b(one: Outcomes, other: Outcomes) -> float | None:
    """Kendall's tau-b (1945) over the comparisons that both made; None where one of them ties them all.

    (same order - opposite order) / sqrt(those that one orders * those that the other orders).
    """
    signs = [(one[pair] - TIE, other[pair] - TIE) for pair in one if pair in other]
    ordered = sum(a != 0 for a, _ in signs) * sum(b != 0 for _, b in signs)
    return sum(a * b for a, b in signs) / math.sqrt(ordered) if ordered else None


def cohen_kappa(table: Table) -> float | None:
    """Cohen's kappa (1960) of a square table: rows are what one says, columns what the other says.

    (observed - expected) / (1 - expected) agreement. None where both always say the same one thing.
    """
    total = sum(map(sum, table))
    if not total:
        return None
    rows, columns = [sum(row) for row in table], [sum(column) for column in zip(*table, strict=True)]
    observed = sum(table[i][i] for i in range(len(table))) / total
    expected = sum(r * c for r, c in zip(rows, columns, strict=True)) / total**2
    return None if math.isclose(expected, 1.0) else (observed - expected) / (1 - expected)


def ordinal_alpha(coincidences: Table) -> float | None:
    """Krippendorff's alpha with the ordinal metric, of a table from `coincidence_table`.

    1 - (n - 1) * sum o_ck d_ck / sum n_c n_k d_ck (Krippendorff 2011, "Computing Krippendorff's Alpha-Reliability"),
    where d_ck is the square of the number of values from c to k, with half of those of c and k. None where only one
    value was ever given.
    """
    counts = [sum(row) for row in coincidences]
    pairs = list(combinations(range(len(counts)), 2))
    distance = {(c, k): (sum(counts[c : k + 1]) - (counts[c] + counts[k]) / 2) ** 2 for c, k in pairs}
    expected = sum(counts[c] * counts[k] * distance[c, k] for c, k in pairs)
    observed = sum(coincidences[c][k] * distance[c, k] for c, k in pairs)
    return 1 - (sum(counts) - 1) * observed / expected if expected else None


def coincidence_table(units: Sequence[Sequence[int]], levels: int) -> list[list[float]]:
    """How often two annotators gave values c and k to one unit; a unit of m values counts m in all.

    `units` are the values that each unit was given, 0 to `levels` - 1. A unit with one value says nothing.
    """
    table = [[0.0] * levels for _ in range(levels)]
    for values in units:
        for c, k in permutations(values, 2):
            table[c][k] += 1 / (len(values) - 1)
    return table


def bootstrap(units: Sequence[T], measure: Callable[[Sequence[T]], float | None]) -> Measured:
    """The measure, with the percentile interval over seeded draws of the units (Efron 1979).

    Draws on which the measure is not defined are left out; where they are most of all draws, there is no interval.
    """
    value = measure(units)
    if value is None or len(units) < LEAST_PROMPTS:
        return Measured(value)
    rng = random.Random(derive("interval", len(units)))
    draws = max(200, min(DRAWS, 200_000 // len(units)))
    drawn = (measure(rng.choices(units, k=len(units))) for _ in range(draws))
    known = [result for result in drawn if result is not None]
    if len(known) < draws / 2:
        return Measured(value)
    return Measured(value, *middle_95(known))


@dataclass(frozen=True)
class _Part:
    """What one prompt contributes."""

    annotators: tuple[str, ...]
    comparisons: int
    both_order: int
    same_order: int
    taus: tuple[float, ...]
    two_sided: Table
    """What one annotator says (rows) and another (columns), in the order of their names."""
    coincidences: Table


def _part(prompt: Mapping[str, Outcomes]) -> _Part:
    twos = [(prompt[a], prompt[b]) for a, b in combinations(sorted(prompt), 2)]
    said = [(one[pair], other[pair]) for one, other in twos for pair in one if pair in other]
    ordered = [(a, b) for a, b in said if TIE not in (a, b)]
    units: dict[Comparison, list[int]] = {}
    for outcomes in prompt.values():
        for pair, outcome in outcomes.items():
            units.setdefault(pair, []).append(outcome)
    two_sided = [[float(said.count((c, k))) for k in range(3)] for c in range(3)]
    shared = {pair for pair, values in units.items() if len(values) > 1}
    return _Part(
        annotators=tuple(name for name, outcomes in prompt.items() if not shared.isdisjoint(outcomes)),
        comparisons=len(said),
        both_order=len(ordered),
        same_order=sum(a == b for a, b in ordered),
        taus=tuple(tau for one, other in twos if (tau := tau_b(one, other)) is not None),
        two_sided=_both_ways(two_sided),
        coincidences=_both_ways(coincidence_table(list(units.values()), 3)),
    )


def _both_ways(table: Table) -> Table:
    """The mean of the table and what it would be with the first and second answer exchanged."""
    return [[(table[c][k] + table[2 - c][2 - k]) / 2 for k in range(3)] for c in range(3)]


def _ratio(parts: Sequence[tuple[float, int]]) -> float | None:
    count = sum(count for _, count in parts)
    return sum(total for total, _ in parts) / count if count else None


def _sum(tables: Sequence[Table]) -> Table:
    return [[sum(cells) for cells in zip(*rows, strict=True)] for rows in zip(*tables, strict=True)]
