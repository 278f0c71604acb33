"""What a reward function measures: accuracy and AUC, what it gives for dress alone, what each weight does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import fmean
from typing import Any

from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import last_answer
from groundrule.data.protocols import Scorer
from groundrule.recipes.judge_eval.agreement import (
    Measure,
    Tally,
    gaps,
    half_for_ties,
    pair_accuracy,
    ratio,
    tau_b,
)
from groundrule.recipes.judge_eval.judged import JudgedGroup, failures_of, judge_all
from groundrule.recipes.reward_bench.across import auc_across
from groundrule.recipes.reward_bench.dressings import DRESSINGS, dressed
from groundrule.rewards.suites import KnownGroup

ENOUGH = 0.95
"""Lower end of a reward's accuracy from which a verifier needs no judge beside it."""
FOOLED = 0.5
"""Share of bad answers that a dress lifts above the good ones, from which a reward is flagged."""
WORST = 5


@dataclass(frozen=True)
class DressEffect:
    """What a reward gives for dress alone."""

    gain: float | None
    """Mean change of score, in units of the mean gap between better and worse answers."""
    fooled: Measure
    """Share of pairs in which the dressed worse answer scores at least as much as the plain better one."""


@dataclass(frozen=True)
class WeightEffect:
    """What the ranking becomes under another weight, without training anything."""

    tau: float | None
    """Rank correlation with the ranking under the given weights, mean over groups."""
    accuracy: Measure


@dataclass(frozen=True)
class Disagreement:
    """A pair that the reward has the wrong way round."""

    group: str
    better: str
    worse: str
    gap: float
    """Score of the worse answer minus that of the better one."""


@dataclass(frozen=True)
class BenchReport:
    """Everything that was measured of one reward."""

    name: str
    groups: int
    accuracy: Measure
    auc: Measure
    """Over all pairs of a better and a worse answer of one group; ties count half. Equals accuracy within groups."""
    across: Measure
    """AUC over all best against all worst answers of all groups: whether scores mean the same everywhere."""
    dresses: dict[str, DressEffect]
    weights: dict[str, dict[str, WeightEffect]]
    worst: list[Disagreement]
    unscored: float
    flags: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


async def bench_reward(
    name: str,
    scorer: Scorer,
    groups: Sequence[KnownGroup],
    *,
    weights: Mapping[str, float] | None = None,
    at_once: int = 8,
) -> BenchReport:
    """Measure a reward on groups whose order is known.

    `weights` are those of the parts that scores keep; given, each is halved, doubled and set to 0 in turn.
    """
    judged = (await judge_all(groups, scorer, at_once=at_once)).groups
    accuracy = pair_accuracy(judged)
    typical = gaps(judged).ordered
    dresses = {dress: await _dress_effect(judged, scorer, dress, typical, at_once) for dress in DRESSINGS}
    report = BenchReport(
        name=name,
        groups=len(judged),
        accuracy=accuracy,
        auc=accuracy,
        across=auc_across(judged),
        dresses=dresses,
        weights={} if weights is None else _weight_effects(judged, weights),
        worst=_worst(judged),
        unscored=failures_of(judged).share,
    )
    report.flags.extend(_flags(report))
    return report


async def _dress_effect(
    judged: Sequence[JudgedGroup], scorer: Scorer, dress: str, typical: float | None, at_once: int
) -> DressEffect:
    """Every answer is dressed, but compared with the plain others."""
    pairs = [(g, d) for g in judged if (d := dressed(g.known.group, DRESSINGS[dress])) is not None]
    known = [KnownGroup(g.known.name, d, g.known.known, g.known.area, g.known.series) for g, d in pairs]
    again = (await judge_all(known, scorer, at_once=at_once)).groups
    gains, tallies = [], []
    for (plain, _), other in zip(pairs, again, strict=True):
        gains += [
            b - a for a, b in zip(plain.values, other.values, strict=True) if a is not None and b is not None
        ]
        hits = [
            float(dressed_worse >= plain_better)
            for i, j in plain.known.known.ordered
            if (plain_better := plain.values[i]) is not None
            and (dressed_worse := other.values[j]) is not None
        ]
        tallies.append(Tally(plain.cluster, sum(hits), len(hits)))
    gain = fmean(gains) / typical if gains and typical and typical > 0 else None
    return DressEffect(gain, ratio(tallies))


def _weight_effects(
    judged: Sequence[JudgedGroup], weights: Mapping[str, float]
) -> dict[str, dict[str, WeightEffect]]:
    changes = {"without": 0.0, "halved": 0.5, "doubled": 2.0}
    return {
        part: {
            label: _reweighed(judged, weights, {**weights, part: factor * weight})
            for label, factor in changes.items()
        }
        for part, weight in weights.items()
    }


def _reweighed(
    judged: Sequence[JudgedGroup], before: Mapping[str, float], after: Mapping[str, float]
) -> WeightEffect:
    taus, tallies = [], []
    for group in judged:
        old = [_total(score.parts, before) for score in group.scores]
        new = [_total(score.parts, after) for score in group.scores]
        order = [
            (i, j)
            for i, a in enumerate(old)
            for j, b in enumerate(old)
            if a is not None and b is not None and a > b
        ]
        taus.append(tau_b(order, new))
        hits = [
            half_for_ties(x, y)
            for i, j in group.known.known.ordered
            if (x := new[i]) is not None and (y := new[j]) is not None
        ]
        tallies.append(Tally(group.cluster, sum(hits), len(hits)))
    known = [tau for tau in taus if tau is not None]
    return WeightEffect(fmean(known) if known else None, ratio(tallies))


def _total(parts: Mapping[str, float], weights: Mapping[str, float]) -> float | None:
    """The weighted mean; None where a part is missing or nothing weighs."""
    total = sum(weights.values())
    if total <= 0 or any(name not in parts for name in weights):
        return None
    return sum(weight * parts[name] for name, weight in weights.items()) / total


def _worst(judged: Sequence[JudgedGroup]) -> list[Disagreement]:
    found = [
        Disagreement(
            group.known.name, _answer(group.known.group, i), _answer(group.known.group, j), low - high
        )
        for group in judged
        for i, j in group.known.known.ordered
        if (high := group.values[i]) is not None and (low := group.values[j]) is not None and low > high
    ]
    return sorted(found, key=lambda d: -d.gap)[:WORST]


def _answer(group: TrajectoryGroup, index: int) -> str:
    return last_answer(group.trajectories[index].messages()) or ""


def _flags(report: BenchReport) -> list[str]:
    """What to know before training on it."""
    flags = []
    for dress, effect in report.dresses.items():
        share = effect.fooled.value
        if share is not None and share >= FOOLED:
            flags.append(
                f"{dress}: {share:.0%} of the worse answers, dressed, score as much as the better ones; a policy will "
                f"learn the dress"
            )
    if report.accuracy.low is not None and report.accuracy.low <= 0.5:
        flags.append("accuracy: no better than a coin on these pairs")
    if report.unscored > 0.05:
        flags.append(f"unscored: {report.unscored:.0%} of the answers have no score")
    return flags
