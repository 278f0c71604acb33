"""Learn what a judge adds to scores that is not about the items: the worth of each place, the reach of each call.

Both corrections are shrunk by how well they are known, so that few calls, or a judge without these faults,
change nothing. They are made on the raw scale: `benchmarks/judge_signal.py` finds means of raw scores nearer
to the truth than means of log odds, whose ends a rounded score blows up. What helps there is taking off the
places where a group is read once; an order and its reverse cancel most of their effect by themselves.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations
from operator import mul
from statistics import fmean, pstdev

from groundrule.rewards.merge import drawn_in
from groundrule.rewards.reliability import PassScores

_LEAST_SPREAD = 0.03
"""Added to the spread of a pass: what rounding alone can make of equal items."""

_FEWEST_CALLS = 20
"""Of one size before its places are corrected: several calls show the same items, so fewer mislead."""

_NOTHING = 1e-12


@dataclass
class Calibration:
    """What the calls of one judge have taught so far. One object a judge; not shared between judges.

    `observe` takes every call, `combine` the passes over one group. What a group teaches is used from the
    next group on.
    """

    _places: dict[int, _Places] = field(default_factory=dict, init=False)
    _reach: _Reach = field(default_factory=lambda: _Reach(), init=False)

    def observe(self, scores: Sequence[float | None]) -> None:
        """Learn from one call: its scores in the order shown, None where an item got none."""
        self._places.setdefault(len(scores), _Places(len(scores))).add(scores)

    def slot_effects(self, shown: int) -> list[float]:
        """What each place in a call of `shown` items adds to a score, first place first; zeros if unknown.

        Orders are drawn at random, so the mean score of every place would be the same but for the judge. The
        deviations are shrunk by how much of them may be noise.
        """
        return self._places[shown].effects() if shown in self._places else [0.0] * shown

    def corrected(self, scores: Sequence[float | None]) -> list[float | None]:
        """One call's scores, in the order shown, without the effect of the places; within 0..1."""
        effects = self.slot_effects(len(scores))
        return _within_bounds(
            [None if s is None else s - effect for s, effect in zip(scores, effects, strict=True)]
        )

    def combine(self, passes: PassScores, slots: Sequence[Sequence[int | None]]) -> list[float | None]:
        """One score per item from several passes over a group; None for items without any score.

        `slots[pass][item]` is the item's place in that pass, counted from 0, None where it was not shown. The
        effect of the places is taken off, passes that stretch or squeeze the scores are drawn towards the
        mean spread, and passes that miss items are levelled on the items they share. Each pass keeps a
        positive weight, so an order that all of them agree on, places aside, is never turned around.
        """
        plain = [self._without_places(*given) for given in zip(passes, slots, strict=True)]
        shared = [i for i, column in enumerate(zip(*plain, strict=True)) if None not in column]
        levels = [_level(scores, shared) for scores in plain]
        common = [
            [score - level for i in shared if (score := scores[i]) is not None]
            for scores, level in zip(plain, levels, strict=True)
        ]
        gains = self._reach.gains(common)
        self._reach.add(common)
        middle = fmean(levels) if levels else 0.0
        return _within_bounds([_mean(column, levels, gains, middle) for column in zip(*plain, strict=True)])

    def _without_places(
        self, scores: Sequence[float | None], slots: Sequence[int | None]
    ) -> list[float | None]:
        effects = self.slot_effects(1 + max((slot for slot in slots if slot is not None), default=-1))
        return [
            None if score is None else score - (effects[slot] if slot is not None else 0.0)
            for score, slot in zip(scores, slots, strict=True)
        ]


@dataclass
class _Places:
    """Sums over the calls of one size, each call centred on its mean."""

    shown: int
    counts: list[int] = field(init=False)
    sums: list[float] = field(init=False)
    squares: float = 0.0
    calls: int = 0

    def __post_init__(self) -> None:
        self.counts = [0] * self.shown
        self.sums = [0.0] * self.shown

    def add(self, scores: Sequence[float | None]) -> None:
        present = [score for score in scores if score is not None]
        middle = fmean(present) if present else 0.0
        self.calls += bool(present)
        for place, score in enumerate(scores):
            if score is not None:
                self.counts[place] += 1
                self.sums[place] += score - middle
                self.squares += (score - middle) ** 2

    def effects(self) -> list[float]:
        """A straight line over the places and what is left of their means, each as far as it is not noise.

        Apart, because an order and its reverse cancel a line, and so must what was learned by chance.
        """
        if self.shown < 2 or min(self.counts) < _FEWEST_CALLS:
            return [0.0] * self.shown
        freedom = sum(self.counts) - self.calls - (self.shown - 1)
        means = [total / count for total, count in zip(self.sums, self.counts, strict=True)]
        within = self.squares - sum(map(mul, self.sums, means))
        noise = within / freedom * fmean(1 / count for count in self.counts)
        places = [0.5 - place / (self.shown - 1) for place in range(self.shown)]
        slope = sum(map(mul, places, means)) / sum(map(mul, places, places))
        line = [slope * place for place in places]
        rest = [mean - on_line for mean, on_line in zip(means, line, strict=True)]
        parts = zip(_shrunk(line, noise, 1), _shrunk(rest, noise, self.shown - 2), strict=True)
        return [on_line + off_line for on_line, off_line in parts]


@dataclass
class _Reach:
    """How much further some passes over a group spread their scores than others, beyond chance."""

    apart: float = 0.0
    """Sum of squared deviations of a pass's log spread from the mean over the passes of its group."""
    chance: float = 0.0
    """What that sum would be for uncorrelated passes that all spread alike: 1 / (2 (items - 1)) each."""
    freedom: int = 0
    products: float = 0.0
    squares: float = 0.0

    def add(self, passes: Sequence[Sequence[float]]) -> None:
        """Learn from the centred scores of several passes over the same items."""
        items = len(passes[0]) if passes else 0
        if len(passes) < 2 or items < 3:
            return
        self.apart += sum(log * log for log in _log_spreads(passes))
        self.chance += (len(passes) - 1) / (2 * (items - 1))
        self.freedom += len(passes) - 1
        pairs = list(combinations(passes, 2))
        self.products += sum(sum(map(mul, a, b)) for a, b in pairs) / len(pairs)
        self.squares += sum(sum(map(mul, a, a)) for a in passes) / len(passes)

    def share(self) -> float:
        """How much of the differences between spreads is real, 0..1."""
        if self.squares < _NOTHING:
            return 0.0
        correlation = self.products / self.squares
        return _beyond_chance(self.apart, self.chance * (1.0 - correlation**2), self.freedom)

    def gains(self, passes: Sequence[Sequence[float]]) -> list[float]:
        """A positive factor a pass that brings their spreads together by that share; the mean spread stays."""
        share = self.share()
        if not share or len(passes[0]) < 3:
            return [1.0] * len(passes)
        factors = [math.exp(-share * log) for log in _log_spreads(passes)]
        spreads = [pstdev(scores) for scores in passes]
        total = sum(map(mul, factors, spreads))
        return [factor * sum(spreads) / total if total else 1.0 for factor in factors]


def _shrunk(effects: Sequence[float], noise: float, freedom: int) -> list[float]:
    """The effects as far as their squares are beyond what noise of this variance gives by chance."""
    share = _beyond_chance(sum(map(mul, effects, effects)), noise * freedom, freedom)
    return [share * effect for effect in effects]


def _beyond_chance(found: float, chance: float, freedom: int) -> float:
    """The share of a sum of squares that is real, 0..1, if chance gives `chance` on average.

    Two standard deviations of chance are allowed for, so that what is little known corrects nothing.
    """
    if found < _NOTHING or freedom < 1:
        return 0.0
    return max(0.0, 1.0 - chance * (1.0 + 2.0 * math.sqrt(2.0 / freedom)) / found)


def _log_spreads(passes: Sequence[Sequence[float]]) -> list[float]:
    logs = [math.log(pstdev(scores) + _LEAST_SPREAD) for scores in passes]
    return [log - fmean(logs) for log in logs]


def _level(scores: Sequence[float | None], shared: Sequence[int]) -> float:
    """The mean of a pass over the items that all passes scored, or over all that it scored."""
    among = [score for i in shared if (score := scores[i]) is not None] or [
        s for s in scores if s is not None
    ]
    return fmean(among) if among else 0.0


def _mean(
    scores: Sequence[float | None], levels: Sequence[float], gains: Sequence[float], middle: float
) -> float | None:
    """An item's mean over the passes that scored it, each on the common level and spread."""
    gaps = [
        gain * (score - level)
        for score, level, gain in zip(scores, levels, gains, strict=True)
        if score is not None
    ]
    return middle + fmean(gaps) if gaps else None


def _within_bounds(values: Sequence[float | None]) -> list[float | None]:
    inside = iter(drawn_in([value for value in values if value is not None]))
    return [None if value is None else next(inside) for value in values]
