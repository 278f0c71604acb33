"""Read a group several times, each time in another order, and measure how far the readings agree.

Up to `most` attempts go into one call. A larger group is split into random overlapping chunks, and what
is said in them is merged by a soft Bradley-Terry fit.
"""

from __future__ import annotations

import logging
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean, pstdev

from groundrule._util.aio import settle
from groundrule._util.seed import derive
from groundrule.data.score import total_cost
from groundrule.errors import BudgetError, ConfigError, JudgeError, LlmError
from groundrule.rewards.attempt import Attempt, evidence_keys
from groundrule.rewards.calibration import Calibration
from groundrule.rewards.calls import Call, Reader, Said
from groundrule.rewards.merge import merge, merge_reliability
from groundrule.rewards.orders import is_connected, partitions
from groundrule.rewards.reliability import (
    PassScores,
    about_their_means,
    flip_rate,
    noise_of_mean,
    reliability,
    slot_effect,
    spread,
)

logger = logging.getLogger(__name__)

ROUND = 2
"""Passes are added in pairs, so that each order is balanced by its reverse."""


@dataclass(frozen=True)
class Passes:
    """How often a group is read."""

    count: int = 1
    at_most: int | None = None
    """More passes are added up to so many while the reliability is below `enough`; None: never."""
    enough: float = 0.6
    """Reliability, 0..1, at which no more passes are needed."""
    most: int = 8
    """Attempts in one call. A group of more is read at least twice, in chunks."""

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ConfigError(f"passes is {self.count}, but the judge must read the group at least once")
        if self.at_most is not None and self.at_most < self.count:
            raise ConfigError(f"max_passes is {self.at_most}, below passes={self.count}")
        if self.most < 2:
            raise ConfigError(f"a call with {self.most} attempts compares nothing; show at least 2")
        if not 0 <= self.enough <= 1:
            raise ConfigError(f"min_reliability is {self.enough}, but a reliability lies in 0..1")


@dataclass(frozen=True)
class Measured:
    """What several readings say of each attempt, and how well they agree."""

    values: list[float | None]
    """None for an attempt that no reading could decide."""
    explanations: list[str]
    passes: PassScores
    """Scores as [pass][attempt]; None where a failed call left one out."""
    slots: list[list[int | None]]
    """Where each attempt stood in its call, likewise."""
    calls: list[Call]
    metrics: dict[str, float]

    @property
    def cost_usd(self) -> float | None:
        """Of all calls that could be read; None as soon as one is unknown."""
        return total_cost(call.cost_usd for call in self.calls)

    def parts_of(self, index: int) -> dict[str, float]:
        """The single readings behind a value, where there were several, and what of it was not shown."""
        elided = max((c.said[index].elided for c in self.calls if index in c.said), default=0.0)
        parts = {"elided": elided} if elided else {}
        if len(self.passes) < 2:
            return parts
        for number, (scores, slots) in enumerate(zip(self.passes, self.slots, strict=True), start=1):
            score, slot = scores[index], slots[index]
            if score is not None and slot is not None:
                parts |= {f"pass{number}": score, f"slot{number}": float(slot)}
        deviation = spread(self.passes)[index]
        return parts if deviation is None else {**parts, "spread": deviation}


async def measure(
    reader: Reader, attempts: Sequence[Attempt], plan: Passes, calibration: Calibration | None = None
) -> Measured:
    """Read the attempts as planned; with a calibration their values are corrected by it, and it learns.

    Raises `JudgeError` or `LlmError` when too little can be read: of two or more passes at least two must
    succeed; a large group needs every attempt in a readable call and all of them linked by attempts that were
    shown together.
    """
    rng = random.Random(derive("orders", reader.seed, *evidence_keys(attempts)))
    n, count = len(attempts), plan.count
    if n > plan.most:
        count = max(ROUND, count)
    orders = partitions(n, count, most=plan.most, rng=rng)
    done, errors = await _read(reader, attempts, orders, first=0)
    _check_enough(n, count, done, errors)
    measured = _measured(n, done)
    while plan.at_most is not None and count + ROUND <= plan.at_most and _is_doubtful(measured, plan):
        extra = partitions(n, ROUND, most=plan.most, rng=rng)
        more, errors = await _read(reader, attempts, extra, first=count)
        done, count = done + more, count + ROUND
        measured = _measured(n, done)
        if any(isinstance(error, BudgetError) for error in errors):
            logger.info("the budget allows no further passes: reliability stays %s", measured.metrics)
            break
    return measured if calibration is None else _calibrated(measured, calibration, whole=n <= plan.most)


def _is_doubtful(measured: Measured, plan: Passes) -> bool:
    known = measured.metrics.get("judge_reliability")
    return known is None or known < plan.enough


async def _read(
    reader: Reader, attempts: Sequence[Attempt], orders: Sequence[Sequence[Sequence[int]]], *, first: int
) -> tuple[list[list[Call]], list[Exception]]:
    """The calls that could be read, by pass, and what went wrong with the others."""
    places = [(i, chunk) for i, chunks in enumerate(orders) for chunk in chunks]
    results = await settle([reader.read(attempts, chunk, first + i) for i, chunk in places])
    done: list[list[Call]] = [[] for _ in orders]
    errors: list[Exception] = []
    for (i, _), result in zip(places, results, strict=True):
        if isinstance(result, Call):
            done[i].append(result)
        elif isinstance(result, JudgeError | LlmError):
            errors.append(result)
        else:
            raise result
    return [calls for calls in done if calls], errors


def _check_enough(n: int, count: int, done: list[list[Call]], errors: list[Exception]) -> None:
    chunks = [list(call.said) for calls in done for call in calls]
    if errors and (len(done) < min(count, 2) or not is_connected(n, chunks)):
        if len(errors) == 1 and not done:
            raise errors[0]
        raise JudgeError(
            f"{len(errors)} of {len(chunks) + len(errors)} readings failed, too many to compare: {errors[0]}"
        ) from errors[0]


def _measured(n: int, done: list[list[Call]]) -> Measured:
    passes: list[list[float | None]] = [[None] * n for _ in done]
    slots: list[list[int | None]] = [[None] * n for _ in done]
    for number, calls in enumerate(done):
        for call in calls:
            for slot, index in enumerate(call.order):
                slots[number][index] = slot
                if index in call.said:
                    passes[number][index] = call.said[index].score
    calls = [call for several in done for call in several]
    chunked = max(len(call.order) for call in calls) < n
    chunks = [{index: said.score for index, said in call.said.items()} for call in calls]
    values = merge(n, chunks) if chunked else _means(passes)
    trust = merge_reliability(n, chunks, values) if chunked else None
    return Measured(
        values=values,
        explanations=[_nearest(values[i], [c.said[i] for c in calls if i in c.said]) for i in range(n)],
        passes=passes,
        slots=slots,
        calls=calls,
        metrics={
            "judge/passes": float(len(passes)),
            "judge/calls": float(len(calls)),
            **(_agreement_of_chunks(values, trust) if chunked else _agreement(passes)),
            **_slot_effect(calls),
            **_probes(calls),
        },
    )


def _calibrated(measured: Measured, calibration: Calibration, *, whole: bool) -> Measured:
    """Corrected by what earlier groups taught, before this one teaches; chunks only teach."""
    values = calibration.combine(measured.passes, measured.slots) if whole else measured.values
    for call in measured.calls:
        calibration.observe([call.said[i].score if i in call.said else None for i in call.order])
    return replace(measured, values=values)


def _means(passes: PassScores) -> list[float | None]:
    by_attempt = [[s for s in scores if s is not None] for scores in zip(*passes, strict=True)]
    return [fmean(scores) if scores else None for scores in by_attempt]


def _nearest(value: float | None, said: Sequence[Said]) -> str:
    """The reading that comes nearest to the value speaks for all."""
    if value is None:
        return ""
    return min(said, key=lambda one: abs(one.score - value)).explanation


def _agreement(passes: PassScores) -> dict[str, float]:
    """What repeated readings of the whole group show; nothing where there was only one."""
    if len(passes) < 2:
        return {}
    centred = about_their_means(passes)
    found = {
        "judge_reliability": reliability(centred),
        "judge_noise": noise_of_mean(centred),
        "judge/flip_rate": flip_rate(passes[0], passes[1]),
    }
    return {name: value for name, value in found.items() if value is not None}


def _agreement_of_chunks(values: Sequence[float | None], trust: float | None) -> dict[str, float]:
    """The same where attempts were read in changing company: what the merge could not explain is noise."""
    if trust is None:
        return {}
    spread_of_all = pstdev(v for v in values if v is not None)
    return {"judge_reliability": trust, "judge_noise": spread_of_all * math.sqrt(1 - trust)}


def _slot_effect(calls: Sequence[Call]) -> dict[str, float]:
    """What the first place is worth against the last; noisy in one group, telling as a mean over many."""
    said = [[c.said[i].score if i in c.said else None for i in c.order] for c in calls]
    effect = slot_effect(said)
    return {} if effect is None else {"judge/slot_effect": effect.slope}


def _probes(calls: Sequence[Call]) -> dict[str, float]:
    """The mean of each probe's findings over the calls that carried it."""
    names = sorted({name for call in calls for name in call.metrics})
    return {name: fmean(c.metrics[name] for c in calls if name in c.metrics) for name in names}
