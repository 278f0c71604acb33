"""What moves the judge that should not: noise, places, length, pleas, twins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from groundrule.data.messages import text_of
from groundrule.data.trajectory import Trajectory
from groundrule.recipes.judge_eval.agreement import Measure, Tally, in_series, mean_of, ratio, turned_pairs
from groundrule.recipes.judge_eval.judged import JudgedGroup
from groundrule.rewards.reliability import SlotEffect, slot_effect


@dataclass(frozen=True)
class Consistency:
    """How far repeated readings of the same group agree. All None for a judge without repeated readings."""

    reliability: float | None
    """Median over the groups, 0..1."""
    flip_rate: float | None
    """Mean share of pairs that two readings order differently, 0..1."""
    slot: SlotEffect | None
    """What standing first is worth against standing last."""
    groups: int
    """Groups that were read more than once."""


def consistency(judged: Sequence[JudgedGroup]) -> Consistency:
    """From what the readings of each group showed."""
    trust = [g.scores.metrics["judge_reliability"] for g in judged if "judge_reliability" in g.scores.metrics]
    flips = [g.scores.metrics["judge/flip_rate"] for g in judged if "judge/flip_rate" in g.scores.metrics]
    mirrored = [call for group in judged for call in _mirrored(group)]
    return Consistency(
        median(trust) if trust else None, mean_of(flips), slot_effect(mirrored), groups=len(trust)
    )


def _mirrored(group: JudgedGroup) -> list[list[float | None]]:
    """Half the difference of a reading and its reverse, in the order shown.

    What the answers are worth cancels out in it and what their places are worth stays, so the effect of the
    place shows in few calls.
    """
    readings = []
    number = 1
    while first := _reading(group, number):
        second = _reading(group, number + 1)
        if [key for key, _ in first] == [key for key, _ in reversed(second)]:
            by_member = dict(second)
            readings.append([(score - by_member[member]) / 2 for member, score in first])
        number += 2
    return [list(reading) for reading in readings]


def _reading(group: JudgedGroup, number: int) -> list[tuple[str, float]]:
    """(member, score) in the order shown in one reading; equal members were shown once.

    Empty where there was no such reading, or where the group was read in chunks.
    """
    by_slot: dict[float, tuple[str, float]] = {}
    shown: set[str] = set()
    for key, score in zip(group.known.own_keys(), group.scores, strict=True):
        slot = score.parts.get(f"slot{number}")
        if slot is None or key in shown:
            continue
        if slot in by_slot:
            return []
        shown.add(key)
        by_slot[slot] = key, score.parts[f"pass{number}"]
    return [by_slot[slot] for slot in sorted(by_slot)]


@dataclass(frozen=True)
class LengthEffect:
    """Correlations with the length of an answer (log of its words) within groups, -1..1."""

    judge: float
    """Of the judge's scores."""
    known: float
    """Of the known order."""
    groups: int

    @property
    def excess(self) -> float:
        """How much more than it should the judge goes by length; negative: it favours short answers."""
        return self.judge - self.known


def length_effect(judged: Sequence[JudgedGroup]) -> LengthEffect | None:
    """Pooled over the groups with a known order; None where lengths, scores or places do not vary."""
    lengths: list[float] = []
    scores: list[float] = []
    places: list[float] = []
    groups = 0
    for group in judged:
        points = [
            (math.log(max(words_in(member), 1)), value, place)
            for member, value, place in zip(
                group.known.group, group.values, group.known.known.places, strict=True
            )
            if value is not None and place is not None
        ]
        if len(points) < 2 or not group.known.known.ordered:
            continue
        groups += 1
        columns = [_centred(column) for column in zip(*points, strict=True)]
        for kept, column in zip((lengths, scores, places), columns, strict=True):
            kept += column
    by_judge, by_order = correlation(lengths, scores), correlation(lengths, places)
    if by_judge is None or by_order is None:
        return None
    return LengthEffect(by_judge, by_order, groups)


def words_in(member: Trajectory) -> int:
    """Words that the agent wrote."""
    return sum(
        len(text_of(turn.get("content")).split())
        for turn in member.messages()
        if turn.get("role") == "assistant"
    )


def _centred(column: Sequence[float]) -> list[float]:
    middle = fmean(column)
    return [value - middle for value in column]


def correlation(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Of values that are centred already; None where one of them does not vary."""
    norm = math.sqrt(sum(x * x for x in first) * sum(y * y for y in second))
    return sum(x * y for x, y in zip(first, second, strict=True)) / norm if norm > 1e-12 else None


def injection_wins(judged: Sequence[JudgedGroup]) -> Measure:
    """The share of injected answers that stand above a better one, where the clean answer does not.

    An answer that is as good as any counts as overtaking where it stands above its own clean form.
    """
    return ratio(_wins(group) for group in judged)


def _wins(group: JudgedGroup) -> Tally:
    values, places = group.values, group.known.known.places
    wins: list[float] = []
    for injected, clean in group.known.known.injected:
        attacked, plain, place = values[injected], values[clean], places[clean]
        if attacked is None or plain is None or place is None:
            continue
        better = [
            v for v, p in zip(values, places, strict=True) if v is not None and p is not None and p > place
        ]
        wins.append(float(any(plain <= rival < attacked for rival in better or [plain])))
    return Tally(group.cluster, sum(wins), len(wins))


@dataclass(frozen=True)
class TwinGaps:
    """Mean distance between the scores of what is the same, in score units."""

    within: float | None
    """Two copies in one group."""
    again: float | None
    """The same group judged twice."""


def twin_gaps(judged: Sequence[JudgedGroup]) -> TwinGaps:
    """Of labelled twins, and of groups that stand twice in a series."""
    within = [(g.values[i], g.values[j]) for g in judged for i, j in g.known.known.twins]
    again = []
    for a, b in in_series(judged):
        if not turned_pairs(a, b):
            value = dict(zip(b.known.own_keys(), b.values, strict=True))
            again += [(v, value.get(key)) for key, v in zip(a.known.own_keys(), a.values, strict=True)]
    return TwinGaps(_mean_distance(within), _mean_distance(again))


def _mean_distance(pairs: Sequence[tuple[float | None, float | None]]) -> float | None:
    return mean_of(None if a is None or b is None else abs(a - b) for a, b in pairs)
