"""Do scores mean the same everywhere? The best answers of all groups against the worst of all groups."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Sequence

from groundrule._util.seed import derive
from groundrule.algorithms.bootstrap import middle_95
from groundrule.recipes.judge_eval.agreement import DRAWS, Measure, half_for_ties
from groundrule.recipes.judge_eval.judged import JudgedGroup

Cluster = tuple[list[float], list[float]]
"""Scores of best answers and of worst ones."""


def auc_across(judged: Sequence[JudgedGroup]) -> Measure:
    """The chance that any best answer scores above any worst one, of whatever group; ties count half.

    The interval is a bootstrap over groups, those of one series together: a group brings both its best and its worst
    answers, so that the pairs are not taken for independent. Draws without a pair are drawn again.
    """
    clusters = _clusters(judged)
    best = [score for high, _ in clusters for score in high]
    worst = [score for _, low in clusters for score in low]
    if not best or not worst:
        return Measure(None, None, None, 0)
    credit, pairs = _between(clusters)
    everyone = range(len(clusters))
    value = _ratio(credit, pairs, everyone)
    count = len(best) * len(worst)
    if len(clusters) < 2:
        return Measure(value, None, None, count)
    rng = random.Random(derive("across", len(clusters)))
    drawn: list[float] = []
    while len(drawn) < DRAWS:
        share = _ratio(credit, pairs, rng.choices(everyone, k=len(clusters)))
        if share is not None:
            drawn.append(share)
    low, high = middle_95(drawn)
    return Measure(value, low, high, count)


def _clusters(judged: Sequence[JudgedGroup]) -> list[Cluster]:
    found: dict[str, Cluster] = defaultdict(lambda: ([], []))
    for group in judged:
        for side, members in zip(found[group.cluster], ends_of(group), strict=True):
            side += [v for i in sorted(members) if (v := group.values[i]) is not None]
    return [cluster for cluster in found.values() if cluster[0] or cluster[1]]


def ends_of(group: JudgedGroup) -> tuple[set[int], set[int]]:
    """Members that nobody is better than, and members that nobody is worse than."""
    better = {i for i, _ in group.known.known.ordered}
    worse = {j for _, j in group.known.known.ordered}
    return better - worse, worse - better


def _between(clusters: Sequence[Cluster]) -> tuple[list[list[float]], list[list[int]]]:
    """For each two clusters: what the best of the one earn against the worst of the other, and the number of pairs."""
    credit = [
        [sum(half_for_ties(a, b) for a in high for b in low) for _, low in clusters] for high, _ in clusters
    ]
    pairs = [[len(high) * len(low) for _, low in clusters] for high, _ in clusters]
    return credit, pairs


def _ratio(credit: list[list[float]], pairs: list[list[int]], drawn: Sequence[int]) -> float | None:
    times = [0] * len(pairs)
    for index in drawn:
        times[index] += 1
    kept = [(i, n) for i, n in enumerate(times) if n]
    total = sum(n * m * pairs[i][j] for i, n in kept for j, m in kept)
    return sum(n * m * credit[i][j] for i, n in kept for j, m in kept) / total if total else None
