"""A jury: several judges, each with a weight and a role, one score.

Judges of different families err differently, so their errors average out where those of one judge, asked
again, do not. Values are joined on the scale of the scoring jurors together, never ranked or z-scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from statistics import fmean
from typing import Literal, NamedTuple

from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Scorer
from groundrule.data.score import Score, Scores, total_cost
from groundrule.errors import ConfigError
from groundrule.rewards.economy import calls_of, cheaper_of
from groundrule.rewards.reliability import about_their_means, krippendorff_alpha, noise_of_mean, reliability
from groundrule.rewards.scoring import scores_of_each

Role = Literal["score", "holdout", "tiebreak", "reserve"]

_PRIOR_GROUPS = 10
"""The scale of a juror seen in fewer groups than this stays nearer to 1 than to what was seen."""


@dataclass(frozen=True)
class Juror:
    """One judge of a jury.

    Roles: `score` counts; `holdout` is logged and never trained on; `tiebreak` is asked, and counts, only
    where the others' reliability is low; `reserve` is asked, in order, where a scoring juror gave nothing.
    """

    name: str
    scorer: Scorer
    weight: float = 1.0
    role: Role = "score"


class Spread(NamedTuple):
    """How far apart a juror puts members: its mean absolute difference between them, added up over groups."""

    total: float = 0.0
    groups: int = 0


@dataclass(frozen=True)
class Jury:
    """A `Scorer` that asks its jurors at once and joins what they say."""

    jurors: Sequence[Juror]
    min_reliability: float = 0.6
    """Below it the tiebreak jurors are asked."""
    spreads: Mapping[str, Spread] = field(default_factory=dict)
    """Of each juror, over the groups that it was aligned on; see `aligned_on`."""

    def __post_init__(self) -> None:
        names = [juror.name for juror in self.jurors]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ConfigError(f"two jurors are called {min(twice)!r}; give each its own name")
        if not self._with("score"):
            raise ConfigError("no juror has the role 'score', so nothing would be scored")
        wrong = [juror for juror in self.jurors if not juror.weight > 0]
        if wrong:
            raise ConfigError(
                f"juror {wrong[0].name!r} has weight {wrong[0].weight}; weights are above 0, and a juror that must "
                "not count has the role 'holdout'"
            )

    async def score(self, group: TrajectoryGroup) -> Scores:
        """The weighted mean over jurors; a member that no juror scored has their reasons."""
        asked = await _ask([*self._with("score"), *self._with("holdout")], group)
        counted = {juror.name: asked[juror.name] for juror in self._with("score")}
        failed = [name for name, scores in counted.items() if not _has_value(scores)]
        for reserve in self._with("reserve"):
            if not failed:
                break
            counted |= await _ask([reserve], group)
            if _has_value(counted[reserve.name]):
                failed.pop()
        if self._with("tiebreak") and self._is_doubtful(counted):
            counted |= await _ask(self._with("tiebreak"), group)
        held = {juror.name: asked[juror.name] for juror in self._with("holdout")}
        return self._joined(counted, held, len(group))

    def aligned_on(self, groups: Iterable[TrajectoryGroup], *, under: str = "ruler") -> Jury:
        """This jury with scales learned from these scored groups too, beside those of earlier calls.

        Jurors who use a narrow part of 0..1 would count for little. Each one's mean absolute difference
        between members, over all groups, is brought to that of the jurors together, shrunk towards no
        change while there are few groups. `under` is what the jurors' metrics begin with on a trajectory.
        """
        spreads = dict(self.spreads)
        for group in groups:
            for juror in self.jurors:
                key = f"{under}/{_part(juror.name)}"
                values = [float(t.metrics[key]) for t in group if key in t.metrics]
                if len(values) > 1:
                    total, count = spreads.get(juror.name, Spread())
                    spreads[juror.name] = Spread(total + _mean_difference(values), count + 1)
        return replace(self, spreads=spreads)

    @cached_property
    def scales(self) -> dict[str, float]:
        """By how much each juror's differences are multiplied before they are joined; none before any group."""
        seen = [self.spreads[j.name] for j in self._with("score") if j.name in self.spreads]
        if not seen:
            return {}
        common = fmean(spread.total / spread.groups for spread in seen)
        return {name: _shrunk_ratio(common, spread) for name, spread in self.spreads.items()}

    def calls_for(self, members: int) -> int:
        """The most calls that a group of so many members takes."""
        return sum(calls_of(juror.scorer, members) for juror in self.jurors)

    def cheaper(self) -> Jury | None:
        """First each juror more cheaply, then without the jurors that do not always count, then fewer."""
        thrifty = [replace(j, scorer=cheaper_of(j.scorer) or j.scorer) for j in self.jurors]
        if any(new.scorer is not old.scorer for new, old in zip(thrifty, self.jurors, strict=True)):
            return replace(self, jurors=thrifty)
        scoring = self._with("score")
        if len(scoring) < len(self.jurors):
            return replace(self, jurors=scoring)
        heaviest = sorted(scoring, key=lambda juror: -juror.weight)
        return replace(self, jurors=heaviest[:-1]) if len(heaviest) > 1 else None

    def _with(self, role: Role) -> list[Juror]:
        return [juror for juror in self.jurors if juror.role == role]

    def _is_doubtful(self, counted: Mapping[str, Scores]) -> bool:
        trust = self._agreement(counted).get("judge_reliability")
        return trust is None or trust < self.min_reliability

    def _aligned(self, counted: Mapping[str, Scores]) -> dict[str, list[float | None]]:
        """Values by juror, each stretched about its own mean."""
        aligned: dict[str, list[float | None]] = {}
        for name, scores in counted.items():
            known = [s.value for s in scores if s.value is not None]
            if known:
                middle, scale = fmean(known), self.scales.get(name, 1.0)
                aligned[name] = [
                    None if s.value is None else middle + scale * (s.value - middle) for s in scores
                ]
        return aligned

    def _agreement(self, counted: Mapping[str, Scores]) -> dict[str, float]:
        """Between jurors where there are several, else what the only one says of itself."""
        aligned = about_their_means(list(self._aligned(counted).values()))
        if len(aligned) == 1:
            alone = next(scores for scores in counted.values() if _has_value(scores))
            own = ("judge_reliability", "judge_noise")
            return {name: alone.metrics[name] for name in own if name in alone.metrics}
        found = {
            "judge_reliability": reliability(aligned),
            "judge_noise": noise_of_mean(aligned),
            "judge/agreement": krippendorff_alpha([[s.value for s in scores] for scores in counted.values()]),
        }
        return {name: value for name, value in found.items() if value is not None}

    def _joined(self, counted: Mapping[str, Scores], held: Mapping[str, Scores], members: int) -> Scores:
        aligned = self._aligned(counted)
        weights = {juror.name: juror.weight for juror in self.jurors}
        joined = []
        for i in range(members):
            said = {name: values[i] for name, values in aligned.items()}
            known = {name: value for name, value in said.items() if value is not None}
            parts = _parts_of(i, {**counted, **held})
            everyone = [*counted.values(), *held.values()]
            cost = total_cost(scores[i].cost for scores in everyone)
            if not known:
                reasons = "; ".join(f"{name}: {scores[i].reason}" for name, scores in counted.items())
                joined.append(Score.none(f"no juror gave a score: {reasons}", parts=parts, cost=cost))
                continue
            total = sum(weights[name] for name in known)
            value = sum(weights[name] * v for name, v in known.items()) / total
            words = " | ".join(f"{name}: {counted[name][i].explanation}" for name in known)
            joined.append(Score(value=value, explanation=words, parts=parts, cost=cost))
        return Scores(joined, metrics={**self._agreement(counted), **_holdouts(joined, held)})


async def _ask(jurors: Sequence[Juror], group: TrajectoryGroup) -> dict[str, Scores]:
    return await scores_of_each({juror.name: juror.scorer for juror in jurors}, group, role="juror")


def _part(name: str) -> str:
    return f"jury/{name}"


def _parts_of(i: int, said: Mapping[str, Scores]) -> dict[str, float]:
    """What each juror gave, unaligned."""
    return {_part(name): v for name, scores in said.items() if (v := scores[i].value) is not None}


def _has_value(scores: Scores) -> bool:
    return any(score.value is not None for score in scores)


def _mean_difference(values: Sequence[float]) -> float:
    return fmean(abs(a - b) for a, b in combinations(values, 2))


def _shrunk_ratio(common: float, seen: Spread) -> float:
    """common / own spread, as if `_PRIOR_GROUPS` further groups had shown the common spread."""
    own = (seen.total + _PRIOR_GROUPS * common) / (seen.groups + _PRIOR_GROUPS)
    return common / own if own > 0 else 1.0


def _holdouts(joined: Sequence[Score], held: Mapping[str, Scores]) -> dict[str, float]:
    """How each held-out juror's order agrees with the joined one: concordant minus discordant pairs, -1..1."""
    found: dict[str, float] = {}
    for name, scores in held.items():
        pairs = [
            (a.value - b.value) * (c.value - d.value)
            for (a, c), (b, d) in combinations(zip(joined, scores, strict=True), 2)
            if a.value is not None and b.value is not None and c.value is not None and d.value is not None
        ]
        if pairs:
            found[f"judge/holdout/{name}"] = fmean((p > 0) - (p < 0) for p in pairs)
    return found
