"""A constitution as a judge of groups: members are compared two by two, and a score is how likely one wins.

Comparing in the loop instead of training a preference model on labels is what Lee et al. (2023) call direct RLAIF.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from groundrule._util.aio import settle
from groundrule._util.seed import derive
from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import ChatClient
from groundrule.data.score import Score, Scores, total_cost
from groundrule.errors import ConfigError, DataError, JudgeError, LlmError
from groundrule.llm.cache import ReplyCache
from groundrule.llm.providers import JudgeLike
from groundrule.rewards.attempt import Attempt, attempts_of, evidence_keys
from groundrule.rewards.compare import can_compare, floors, nothing_to_compare
from groundrule.rewards.constitution.comparing import Comparer, Opinion, comparing_judge
from groundrule.rewards.constitution.pairings import count_of, pairings
from groundrule.rewards.constitution.principles import Constitution
from groundrule.rewards.judge_params import checked_params
from groundrule.rewards.reliability import (
    PassScores,
    about_their_means,
    flip_rate,
    noise_of_mean,
    reliability,
)

DEFAULT_JUDGE = "local/smollm2-135m"
"""The embedded model: it needs no key, and it is a weak reader of principles."""

Met = tuple[int, int, list[Opinion]]
"""Two members, and what the judge thinks of them."""


@dataclass(frozen=True)
class ConstitutionJudge:
    """The `Scorer`: the mean probability with which a member wins its comparisons, 0 to 1.

    Up to six members everyone meets everyone; in larger groups everyone meets four others. Each comparison is by
    principles drawn for it, in both orders; see `Comparer`. Members that say the same are compared once, and those
    that say nothing get 0.0 and meet nobody. A comparison that cannot be read is left out; a member without any has
    the reason instead of a score.
    """

    constitution: Constitution
    judge_model: JudgeLike = DEFAULT_JUDGE
    judge_params: Mapping[str, Any] | None = None
    principles: int = 1
    think: bool = False
    logprobs: bool = True
    samples: int = 4
    seed: int = 0
    gate: bool = True
    client: ChatClient | None = field(default=None, repr=False)
    """Asked in place of `judge_model`, under its name."""
    cache: ReplyCache | bool | None = None

    @cached_property
    def comparer(self) -> Comparer:
        """Who is asked; raises `ConfigError` for a judge that cannot be had."""
        return Comparer(
            comparing_judge(self.judge_model, self.judge_params, client=self.client),
            self.constitution,
            principles=self.principles,
            think=self.think,
            logprobs=self.logprobs,
            samples=self.samples,
            seed=self.seed,
            cache=self.cache,
        )

    async def score(self, group: TrajectoryGroup) -> Scores:
        """One score a member, in group order."""
        attempts = attempts_of(group)
        low = floors(attempts) if self.gate else [None] * len(attempts)
        judged = [a for a, floor in zip(attempts, low, strict=True) if floor is None]
        if not can_compare(judged):
            rest = nothing_to_compare(attempts)
            return Scores(own or none for own, none in zip(low, rest, strict=True))
        evidence = {a.key: own for a, own in zip(attempts, evidence_keys(attempts), strict=True)}
        # Sorted first: the same answers in another order make the same prompts, hence the same cache entries.
        distinct = sorted({a.key: a for a in judged}.values(), key=lambda a: evidence[a.key])
        met, errors, count = await self._meet(distinct, [evidence[a.key] for a in distinct])
        place = {a.key: i for i, a in enumerate(distinct)}
        found = _scores(len(distinct), met, errors, len(attempts))
        metrics = _metrics(len(distinct), met)
        if gated := len(attempts) - len(judged):
            metrics["judge/gated"] = float(gated)
        if errors:
            metrics["judge/failed_comparisons"] = len(errors) / count
        return Scores(
            (own or found[place[a.key]] for own, a in zip(low, attempts, strict=True)), metrics=metrics
        )

    def calls_for(self, members: int) -> int:
        """The most calls that a group of so many members takes, of a judge that gives log-probabilities."""
        return self.comparer.calls_for(count_of(members))

    def cheaper(self) -> ConstitutionJudge | None:
        """First with half as many principles a comparison, then with half as many samples."""
        if self.principles > 1:
            return replace(self, principles=self.principles // 2)
        if not self.logprobs and self.samples > 1:
            return replace(self, samples=self.samples // 2)
        return None

    async def _meet(
        self, distinct: Sequence[Attempt], evidence: Sequence[str]
    ) -> tuple[list[Met], list[Exception], int]:
        """The comparisons that could be made, what went wrong with the others, and how many there are in all."""
        rng = random.Random(derive("pairings", self.seed, *evidence))
        pairs = pairings(len(distinct), rng)
        comparer = self.comparer
        results = await settle([comparer.compare(distinct[a], distinct[b]) for a, b in pairs])
        met: list[Met] = []
        errors: list[Exception] = []
        for (a, b), result in zip(pairs, results, strict=True):
            if isinstance(result, JudgeError | LlmError):
                errors.append(result)
            elif isinstance(result, BaseException):
                raise result
            else:
                met.append((a, b, result))
        return met, errors, len(pairs)


def _scores(members: int, met: Sequence[Met], errors: Sequence[Exception], sharers: int) -> list[Score]:
    """What all calls cost is shared by all members of the group."""
    total = total_cost(opinion.cost_usd for _, _, opinions in met for opinion in opinions)
    share = None if total is None else total / sharers
    return [_score(_won(member, met), errors, share) for member in range(members)]


def _won(member: int, met: Sequence[Met]) -> list[tuple[str, float]]:
    """By which principle, and how probably, a member won each of its comparisons."""
    first = [(o.principle, o.p) for a, _, opinions in met if a == member for o in opinions]
    second = [(o.principle, 1.0 - o.p) for _, b, opinions in met if b == member for o in opinions]
    return first + second


def _score(won: Sequence[tuple[str, float]], errors: Sequence[Exception], cost: float | None) -> Score:
    if not won:
        return Score.none(
            f"none of its comparisons could be made: {type(errors[0]).__name__}: {errors[0]}", cost=cost
        )
    value = fmean(p for _, p in won)
    by_principle = {
        f"principle/{name}": fmean(p for other, p in won if other == name) for name, _ in sorted(won)
    }
    return Score(
        value=value,
        explanation=f"wins with {value:.0%} in {len(won)} comparisons ({_listed(by_principle)})",
        parts={"comparisons": float(len(won)), **by_principle},
        cost=cost,
    )


def _listed(by_principle: Mapping[str, float]) -> str:
    return ", ".join(f"{name.removeprefix('principle/')} {p:.2f}" for name, p in by_principle.items())


def _metrics(members: int, met: Sequence[Met]) -> dict[str, float]:
    """What the judge's opinions say of the judge: each order of each drawn principle is a reading of the group."""
    opinions = [opinion for _, _, several in met for opinion in several]
    if not opinions:
        return {}
    readings = _readings(members, met)
    centred = about_their_means(readings)
    shown_first = [p for o in opinions for p in (o.orders[0], 1.0 - o.orders[1])]
    found = {
        "judge/comparisons": float(len(met)),
        "judge/calls": float(sum(o.calls for o in opinions)),
        "judge/orders_agree": fmean(o.orders_agree for o in opinions),
        "judge/slot_effect": 2 * fmean(shown_first) - 1,
        "judge_reliability": reliability(centred),
        "judge_noise": noise_of_mean(centred),
        "judge/flip_rate": flip_rate(readings[0], readings[1]),
    }
    return {name: value for name, value in found.items() if value is not None}


def _readings(members: int, met: Sequence[Met]) -> PassScores:
    """[reading][member]: each member's mean over its comparisons in one order, by the n-th principle of each."""
    most = max(len(opinions) for _, _, opinions in met)
    return [
        [_mean_in(member, met, number, order) for member in range(members)]
        for number in range(most)
        for order in (0, 1)
    ]


def _mean_in(member: int, met: Sequence[Met], number: int, order: int) -> float | None:
    first = [o[number].orders[order] for a, _, o in met if a == member and number < len(o)]
    second = [1.0 - o[number].orders[order] for _, b, o in met if b == member and number < len(o)]
    return fmean(first + second) if first or second else None


class _Params(BaseModel):
    """What may stand in the parameters of a judge `constitution/...`."""

    model_config = ConfigDict(extra="forbid")

    judge: str = DEFAULT_JUDGE
    judge_params: dict[str, Any] = Field(default_factory=dict)
    principles: int = Field(default=1, ge=1)
    think: bool = False
    logprobs: bool = True
    samples: int = Field(default=4, ge=1)
    seed: int = 0
    tags: list[str] = Field(default_factory=list)


def constitution_judge(name: str, params: Mapping[str, Any] | None = None) -> ConstitutionJudge:
    """The judge `constitution/FILE_OR_NAME`; raises `ConfigError` for a file or parameter that cannot be used."""
    if not name:
        raise ConfigError(
            "'constitution' names none; write 'constitution/customer-support' or 'constitution/FILE.toml'"
        )
    given = checked_params(_Params, f"constitution/{name}", params)
    try:
        constitution = Constitution.load(name).with_tags(given.tags)
    except DataError as error:
        raise ConfigError(f"constitution/{name}: {error}") from error
    made = ConstitutionJudge(
        constitution,
        given.judge,
        given.judge_params or None,
        principles=given.principles,
        think=given.think,
        logprobs=given.logprobs,
        samples=given.samples,
        seed=given.seed,
    )
    comparing_judge(given.judge, given.judge_params or None)
    return made
