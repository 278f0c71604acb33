"""Several scorers, one reward: sums, gates, a judge below a verifier, and parts normalised before they are weighed.

Every part keeps its value beside the reward, and for each group it is said how much of the differences each part
makes. A part that is cheap to satisfy (form, length) and makes most of the differences is what a policy will learn.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, pstdev
from typing import Literal

from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Scorer
from groundrule.data.score import Score, Scores, total_cost
from groundrule.errors import ConfigError
from groundrule.rewards.economy import calls_of, cheaper_of
from groundrule.rewards.scoring import scores_of_each

logger = logging.getLogger(__name__)

How = Literal["sum", "gated", "lexicographic", "normalised"]

MOST_BELOW = 0.2
"""The most that everything below a verifier can add to its value."""
DOMINANT = 0.5
"""A cheap part that makes more of the differences than this is reported."""
_LEVEL = 1e-9
_SHARE = "judge/share/"


@dataclass(frozen=True)
class Part:
    """One scorer of a composition."""

    name: str
    scorer: Scorer
    weight: float = 1.0
    is_first: bool = False
    """`gated`: a gate; below `passes_at` the reward is 0. `lexicographic`: the verifier that ranks first."""
    passes_at: float = 1.0
    is_cheap: bool = False
    """Satisfied by form alone, so that it must not make most of the differences."""


@dataclass(frozen=True)
class Composite:
    """A `Scorer` made of scorers.

    sum: weights times values. gated: the same over the other parts, and 0 where a gate fails. lexicographic: the
    first parts rank, the others only order what those put level. They are asked about nothing else, so a group in
    which nothing is level costs no call, and where they cannot order all that are level, the level alone counts.
    normalised: each part is brought to mean 0 and deviation 1 in the group before it is weighed (GDPO,
    2601.05242; its last step, over the batch, is the trainer's).

    A member that one part cannot score has no score, and the reason; a part that is never asked leaves no value.
    """

    parts: Sequence[Part]
    how: How = "lexicographic"

    def __post_init__(self) -> None:
        twice = [name for name, times in Counter(part.name for part in self.parts).items() if times > 1]
        if twice:
            raise ConfigError(f"two parts are called {twice[0]!r}; give each its own name")
        if self.how in ("gated", "lexicographic") and not (self._first and self._rest):
            raise ConfigError(
                f"{self.how!r} needs parts with is_first=True (gates, verifiers) and others beside them"
            )

    @property
    def _first(self) -> list[Part]:
        return [part for part in self.parts if part.is_first]

    @property
    def _rest(self) -> list[Part]:
        return [part for part in self.parts if not part.is_first]

    def calls_for(self, members: int) -> int:
        """The most calls that a group of so many members takes."""
        return sum(calls_of(part.scorer, members) for part in self.parts)

    def cheaper(self) -> Composite | None:
        """The same with each part that has a cheaper version in it; None when no part has."""
        less = [cheaper_of(part.scorer) for part in self.parts]
        if all(new is None for new in less):
            return None
        parts = [replace(p, scorer=new or p.scorer) for p, new in zip(self.parts, less, strict=True)]
        return replace(self, parts=parts)

    async def score(self, group: TrajectoryGroup) -> Scores:
        """One score a member, with the value of each part."""
        if self.how == "lexicographic":
            return await self._lexicographic(group)
        given = await _ask(self.parts, group)
        values = self._normalised(given) if self.how == "normalised" else _weighed(self.parts, given)
        if self.how == "gated":
            values = {part.name: values[part.name] for part in self._rest}
        totals = _totals(values, len(group))
        for part in self._first if self.how == "gated" else []:
            for i, score in enumerate(given[part.name]):
                if score.value is not None and score.value < part.passes_at:
                    totals[i] = 0.0
        return self._scores(given, values, totals)

    async def _lexicographic(self, group: TrajectoryGroup) -> Scores:
        given = await _ask(self._first, group)
        above = _weighed(self._first, given)
        levels = _totals(above, len(group))
        level_with_others = [i for i, v in enumerate(levels) if v is not None and times_level(v, levels) > 1]
        judged = group.with_members(group.trajectories[i] for i in level_with_others)
        below = await _ask(self._rest, judged) if level_with_others else {}
        given |= {name: _spread_out(s, level_with_others, len(group)) for name, s in below.items()}
        room = room_below(levels)
        weight = sum(part.weight for part in self._rest)
        values = dict(above)
        for part in self._rest:
            scores = given.get(part.name)
            if scores is not None:
                values[part.name] = [
                    room * part.weight / weight * s.value if s.value is not None else None for s in scores
                ]
        return self._scores(given, values, _within_levels(levels, _totals(values, len(group))))

    def _normalised(self, given: Mapping[str, Scores]) -> dict[str, list[float | None]]:
        result: dict[str, list[float | None]] = {}
        for part in self.parts:
            known = [s.value for s in given[part.name] if s.value is not None]
            middle, scale = (fmean(known), pstdev(known)) if known else (0.0, 0.0)
            result[part.name] = [
                None
                if s.value is None
                else part.weight * (s.value - middle) / scale
                if scale > _LEVEL
                else 0.0
                for s in given[part.name]
            ]
        return result

    def _scores(
        self,
        given: Mapping[str, Scores],
        values: Mapping[str, Sequence[float | None]],
        totals: Sequence[float | None],
    ) -> Scores:
        joined = [_joined(i, total, given) for i, total in enumerate(totals)]
        shares = _shares(values, totals)
        for part in self.parts:
            share = shares.get(f"{_SHARE}{part.name}", 0.0)
            if part.is_cheap and share > DOMINANT:
                logger.warning("%s makes %.0f%% of the differences between rewards", part.name, 100 * share)
        metrics: dict[str, float] = {}
        for scores in given.values():
            metrics |= {name: v for name, v in scores.metrics.items() if name.startswith("judge/")}
        return Scores(joined, metrics={**metrics, **shares})


async def _ask(parts: Sequence[Part], group: TrajectoryGroup) -> dict[str, Scores]:
    return await scores_of_each({part.name: part.scorer for part in parts}, group, role="part")


def _weighed(parts: Sequence[Part], given: Mapping[str, Scores]) -> dict[str, list[float | None]]:
    return {
        part.name: [None if s.value is None else part.weight * s.value for s in given[part.name]]
        for part in parts
    }


def _totals(values: Mapping[str, Sequence[float | None]], members: int) -> list[float | None]:
    """The sum for each member; None as soon as one part has none."""
    totals: list[float | None] = []
    for i in range(members):
        own = [column[i] for column in values.values()]
        totals.append(None if None in own else sum(v for v in own if v is not None))
    return totals


def _within_levels(levels: Sequence[float | None], totals: Sequence[float | None]) -> list[float | None]:
    """The total of each member, or its level alone where the lower parts did not order all on that level."""
    unordered = [level for level, total in zip(levels, totals, strict=True) if total is None]
    return [
        level if level is None or times_level(level, unordered) else total
        for level, total in zip(levels, totals, strict=True)
    ]


def times_level(value: float, levels: Sequence[float | None]) -> int:
    """How many of the levels are this one."""
    return sum(v is not None and abs(v - value) <= _LEVEL for v in levels)


def room_below(levels: Sequence[float | None], most: float = MOST_BELOW) -> float:
    """How much the lower parts may add so that no level reaches the next one."""
    known = sorted({v for v in levels if v is not None})
    gaps = [b - a for a, b in pairwise(known) if b - a > _LEVEL]
    return min([most, *(0.5 * gap for gap in gaps)])


def _spread_out(scores: Scores, places: Sequence[int], members: int) -> Scores:
    """Scores of some members at their places in the group; nothing was asked about the others."""
    full = [Score.none("not asked: no other member is level with it") for _ in range(members)]
    for place, score in zip(places, scores, strict=True):
        full[place] = score
    return Scores(full, metrics=scores.metrics)


def _joined(i: int, total: float | None, given: Mapping[str, Scores]) -> Score:
    parts: dict[str, float] = {}
    for name, scores in given.items():
        value = scores[i].value
        if value is not None:
            parts[name] = value
        parts |= {f"{name}/{part}": v for part, v in scores[i].parts.items()}
    cost = total_cost(scores[i].cost for scores in given.values() if scores[i].value is not None)
    if total is None:
        reasons = "; ".join(f"{name}: {s[i].reason}" for name, s in given.items() if s[i].value is None)
        return Score.none(reasons or "no part was asked", parts=parts, cost=cost)
    said = " | ".join(f"{name}: {s[i].explanation}" for name, s in given.items() if s[i].explanation)
    return Score(value=total, explanation=said, parts=parts, cost=cost)


def _shares(values: Mapping[str, Sequence[float | None]], totals: Sequence[float | None]) -> dict[str, float]:
    """The share of the variance of the rewards that each part makes: its covariance with them over their variance.

    The shares of a plain sum add up to 1; a part that works against the others has a negative one.
    """
    rows = [i for i, total in enumerate(totals) if total is not None]
    known = [t for t in totals if t is not None]
    if len(known) < 2 or pstdev(known) <= _LEVEL:
        return {}
    middle, variance = fmean(known), pstdev(known) ** 2
    shares: dict[str, float] = {}
    for name, column in values.items():
        own = [column[i] or 0.0 for i in rows]
        mean = fmean(own)
        covariance = fmean((v - mean) * (t - middle) for v, t in zip(own, known, strict=True))
        shares[f"{_SHARE}{name}"] = covariance / variance
    return shares
