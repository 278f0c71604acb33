"""The universal verifier: whatever can be known about an answer, in layers from cheap to dear."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from groundrule._util.aio import or_raise, settle
from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import ChatClient, Scorer
from groundrule.data.score import Score, Scores, total_cost
from groundrule.errors import ConfigError, DataError
from groundrule.llm.cache import ReplyCache
from groundrule.llm.providers import JudgeLike
from groundrule.rewards.checklist.extract import reading_judges
from groundrule.rewards.compose import room_below, times_level
from groundrule.rewards.economy import calls_of
from groundrule.rewards.judge_params import checked_params
from groundrule.rewards.judges import Fallback, Judge
from groundrule.rewards.reliability import reliability
from groundrule.rewards.scoring import scores_or_reasons
from groundrule.rewards.universal.case import Case, cases_of
from groundrule.rewards.universal.check import checked
from groundrule.rewards.universal.criteria import RubricLayer
from groundrule.rewards.universal.reference import ReferenceLayer, equals_reference, references_of
from groundrule.rewards.universal.rubric import Rubric
from groundrule.rewards.universal.triviality import empty, unfit_for_a_judge
from groundrule.rewards.universal.verdict import LAYERS, Layer, Verdict

EPSILON = 0.05
"""The most that the relative pass takes off."""

_NOTHING = "no layer applies: the scenario has no check and no reference, and there is no rubric"


@dataclass(frozen=True)
class UniversalVerifier:
    """The `Scorer`: 0 to 1, or no score with the reason.

    Before all layers, answers that say nothing get 0.0. Then the first layer that can decide gives the score:

    - check: what `metadata["check"]` of the group asks for, see `universal.check`;
    - reference: equal to `metadata["reference"]`, or the same in other words by most of `votes` readings of a judge;
    - rubric: the criteria of `rubric`, for one spec, or by `scenario_id`.

    A layer that cannot decide hands on to the next; where the last one cannot, there is no score. `relative` is a
    scorer of groups (such as `Ruler`) that orders members which came out level, within `EPSILON` and above 0 only.
    """

    rubric: Rubric | Mapping[str, Rubric] | None = None
    judge_model: JudgeLike = "openai/o3"
    judge_params: Mapping[str, Any] | None = None
    layers: Sequence[Layer] = LAYERS
    votes: int = 3
    """Readings of an answer beside the reference; odd, so that they decide."""
    readings: int = 1
    """Readings of an answer by the rubric; each criterion goes by most of them."""
    relative: Scorer | None = None
    seed: int = 0
    gate: bool = True
    """False for tasks whose right answers look like none: an empty text, a mere sign, a repetition of the question."""
    client: ChatClient | None = field(default=None, repr=False)
    """Asked in place of `judge_model`, under its name."""
    cache: ReplyCache | bool | None = None
    fallback: Fallback = None

    def __post_init__(self) -> None:
        unknown = [layer for layer in self.layers if layer not in LAYERS]
        if unknown or not self.layers:
            near = difflib.get_close_matches(unknown[0], LAYERS, n=1) if unknown else []
            hint = f"did you mean {near[0]!r}?" if near else f"the layers are {', '.join(LAYERS)}"
            raise ConfigError(f"layers is {list(self.layers)}; {hint}")
        for name in ("votes", "readings"):
            value = getattr(self, name)
            if value < 1 or value % 2 == 0:
                raise ConfigError(f"{name} is {value}; take an odd number, so that a majority decides")

    @cached_property
    def judges(self) -> list[Judge]:
        """Who is asked; raises `ConfigError` for a judge that cannot be had or does not read."""
        judges = reading_judges(
            self.judge_model,
            self.judge_params,
            client=self.client,
            fallback=self.fallback,
            to="verify answers",
        )
        if "response_format" in (self.judge_params or {}):
            given = (self.judge_params or {})["response_format"]
            judges = [replace(j, params={**j.params, "response_format": given}) for j in judges]
        return judges

    async def verdicts(self, group: TrajectoryGroup) -> list[Verdict]:
        """On each member, in group order, without the relative pass. Equal members are verified once."""
        cases = cases_of(group)
        distinct = list({case.attempt.key: case for case in cases}.values())
        found = await self._distinct(distinct, group)
        by_key = {case.attempt.key: verdict for case, verdict in zip(distinct, found, strict=True)}
        return [by_key[case.attempt.key] for case in cases]

    async def score(self, group: TrajectoryGroup) -> Scores:
        """One score a member, with the layer that decided, the reliability and each criterion in its parts."""
        cases, verdicts = cases_of(group), await self.verdicts(group)
        copies = Counter(case.attempt.key for case in cases)
        scores = [
            _flagged(v.as_score(copies[c.attempt.key]), c.flagged)
            for c, v in zip(cases, verdicts, strict=True)
        ]
        metrics = _metrics(cases, verdicts)
        if self.relative is not None:
            scores = await self._ordered(self.relative, group, scores)
        return Scores(scores, metrics=metrics)

    def calls_for(self, members: int) -> int:
        """The most calls that a group of so many members takes, when none has to be repeated."""
        each = self.votes if "reference" in self.layers else 0
        each += self.readings if "rubric" in self.layers and self.rubric is not None else 0
        return members * each + (calls_of(self.relative, members) if self.relative else 0)

    def cheaper(self) -> UniversalVerifier | None:
        """First without the relative pass, then with a single vote and reading."""
        if self.relative is not None:
            return replace(self, relative=None)
        return replace(self, votes=1, readings=1) if self.votes > 1 or self.readings > 1 else None

    async def _distinct(self, cases: Sequence[Case], group: TrajectoryGroup) -> list[Verdict]:
        found: list[Verdict | None] = [self._empty(case) for case in cases]
        if "check" in self.layers:
            left = [i for i, verdict in enumerate(found) if verdict is None]
            for i, verdict in zip(left, await checked([cases[i] for i in left], group), strict=True):
                found[i] = verdict
        left = [i for i, verdict in enumerate(found) if verdict is None or verdict.score is None]
        judged = or_raise(await settle([self._judged(cases[i], found[i], group) for i in left]))
        for i, verdict in zip(left, judged, strict=True):
            found[i] = verdict
        return [verdict or Verdict.abstain(_NOTHING) for verdict in found]

    def _empty(self, case: Case) -> Verdict | None:
        reason = empty(case) if self.gate else None
        return None if reason is None else Verdict(0.0, layer="gate", reliability=1.0, explanation=reason)

    async def _judged(self, case: Case, so_far: Verdict | None, group: TrajectoryGroup) -> Verdict | None:
        """By the layers that read; `so_far` is why a check could not decide."""
        references = references_of(group.metadata) if "reference" in self.layers else []
        rubric = self._rubric_for(group) if "rubric" in self.layers else None
        if references and equals_reference(case, references):
            said = f"equals the reference: {case.answer[:100]!r}"
            return Verdict(1.0, None, "reference", 1.0, (case.answer,), said)
        if not references and rubric is None:
            return so_far
        known = references or references_of(group.metadata)
        if self.gate and (reason := unfit_for_a_judge(case, known)):
            return Verdict(0.0, layer="gate", reliability=1.0, explanation=reason)
        tried = [so_far] if so_far is not None else []
        if references:
            layer = ReferenceLayer(self.judges, self.votes, self.seed, self.cache)
            tried.append(await layer.verdict(case, references))
        if rubric is not None and (not tried or tried[-1].score is None):
            tried.append(await self._by_rubric(rubric, case, group))
        return _last_of(tried)

    async def _by_rubric(self, rubric: Rubric, case: Case, group: TrajectoryGroup) -> Verdict:
        if case.system and not rubric.fits(case.system):
            return Verdict.abstain(
                "the rubric was made from another system prompt than this group's", "rubric"
            )
        # A rubric of programs alone asks nobody, so its judge need not exist.
        asks = any(c.kind != "programmatic" for c in rubric.criteria)
        layer = RubricLayer(self.judges if asks else [], rubric, self.readings, self.seed, self.cache)
        return await layer.verdict(case, group)

    def _rubric_for(self, group: TrajectoryGroup) -> Rubric | None:
        if isinstance(self.rubric, Mapping):
            return self.rubric.get(group.scenario_id or "")
        return self.rubric

    async def _ordered(
        self, relative: Scorer, group: TrajectoryGroup, scores: Sequence[Score]
    ) -> list[Score]:
        """The best of a level stays on it, the others go down by less than half the way to the next one.

        Nothing is ordered at 0: among worthless answers there is nothing to learn.
        """
        levels = [score.value for score in scores]
        places = [i for i, v in enumerate(levels) if v is not None and v > 0 and times_level(v, levels) > 1]
        if not places:
            return list(scores)
        said = await scores_or_reasons(relative, group.with_members(group.trajectories[i] for i in places))
        unordered = [levels[i] for i, s in zip(places, said, strict=True) if s.value is None]
        room = room_below(levels, EPSILON)
        ordered = list(scores)
        for i, below in zip(places, said, strict=True):
            level = levels[i]
            if level is None or below.value is None or times_level(level, unordered):
                continue
            ordered[i] = scores[i].model_copy(
                update={
                    "value": level - room * (1.0 - below.value),
                    "parts": {**scores[i].parts, "level": level, "relative": below.value},
                    "cost": total_cost([scores[i].cost, below.cost]),
                }
            )
        return ordered


def _last_of(tried: Sequence[Verdict]) -> Verdict:
    """The last layer's verdict, with what all of them cost, and why those before it could not decide."""
    last = tried[-1]
    reasons = [verdict.reason for verdict in tried if verdict.reason]
    return replace(
        last,
        reason=None if last.score is not None else "; then ".join(reasons),
        calls=sum(verdict.calls for verdict in tried),
        cost_usd=total_cost(verdict.cost_usd for verdict in tried),
    )


def _flagged(score: Score, flagged: int) -> Score:
    if not flagged:
        return score
    text = f"{score.explanation} [{flagged} sentences speak to the grader and do not count]"
    return score.model_copy(update={"explanation": text, "parts": {**score.parts, "flagged": 1.0}})


def _metrics(cases: Sequence[Case], verdicts: Sequence[Verdict]) -> dict[str, float]:
    """How many members each layer decided, and how far a judge's readings agree."""
    decided = Counter(v.layer for v in verdicts if v.score is not None and v.layer is not None)
    names = {layer: f"judge/by_{layer}" for layer in LAYERS} | {"gate": "judge/gated"}
    metrics = {names[layer]: float(count) for layer, count in sorted(decided.items())}
    if abstained := sum(verdict.score is None for verdict in verdicts):
        metrics["judge/abstained"] = float(abstained)
    if flagged := sum(bool(case.flagged) for case in cases):
        metrics["judge/flagged"] = float(flagged)
    most = max((len(verdict.readings) for verdict in verdicts), default=0)
    passes = [[_reading(verdict, number, most) for verdict in verdicts] for number in range(most)]
    if most > 1 and (trust := reliability(passes)) is not None:
        metrics["judge_reliability"] = trust
    return metrics


def _reading(verdict: Verdict, number: int, most: int) -> float | None:
    """What a program decided, it would decide again in every reading."""
    if not verdict.readings:
        return verdict.score
    return verdict.readings[number] if number < len(verdict.readings) else None


class _Params(BaseModel):
    """What may stand in the parameters of a judge `universal/...`."""

    model_config = ConfigDict(extra="forbid")

    judge: str
    judge_params: dict[str, Any] = Field(default_factory=dict)
    layers: tuple[Layer, ...] = LAYERS
    votes: int = 3
    readings: int = 1
    seed: int = 0


def universal_judge(name: str, params: Mapping[str, Any] | None = None) -> UniversalVerifier:
    """The judge `universal/RUBRIC.toml`, or `universal/-` without a rubric; raises `ConfigError` for what is wrong."""
    if not name:
        raise ConfigError(
            "'universal' names no rubric; write 'universal/rubric.toml', or 'universal/-' for none"
        )
    given = checked_params(_Params, f"universal/{name}", params)
    try:
        rubric = None if name == "-" else Rubric.load(name)
    except DataError as error:
        raise ConfigError(f"universal/{name}: {error}") from error
    made = UniversalVerifier(
        rubric,
        given.judge,
        given.judge_params or None,
        given.layers,
        given.votes,
        given.readings,
        seed=given.seed,
    )
    _ = made.judges  # A judge that cannot be had is said now, not after the first rollouts.
    return made
