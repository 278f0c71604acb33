"""The third layer: a rubric's criteria, each decided for one answer and shown by words of the answer."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal, get_args

from groundrule._util.aio import settle
from groundrule._util.seed import derive
from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import Message
from groundrule.data.protocols import ChatReply
from groundrule.data.score import total_cost
from groundrule.llm.cache import ReplyCache
from groundrule.rewards.ask import ask
from groundrule.rewards.attempt import Attempt
from groundrule.rewards.calls import fitted_for
from groundrule.rewards.checklist.verdicts import entries_by_name, verdict_and_quote
from groundrule.rewards.judges import Judge
from groundrule.rewards.parse import reply_object
from groundrule.rewards.prompt import framed, object_schema, reply_format
from groundrule.rewards.prompt_files import prompt_text, prompt_version
from groundrule.rewards.universal.case import Case, stands_in
from groundrule.rewards.universal.check import PASSES_AT, Check, score_by
from groundrule.rewards.universal.reference import LONGEST_QUOTE, readable, told
from groundrule.rewards.universal.rubric import Rubric, RubricCriterion
from groundrule.rewards.universal.verdict import Verdict, majority

Said = Literal["met", "unmet", "cannot_assess"]

MOST_UNASSESSED = 0.3
"""Share of the weight; above it the verifier abstains."""

_FILE = "universal_criteria.md"
_CLOSING = "Decide every criterion for the ANSWER."
_TOKENS_A_CRITERION = 60


@dataclass(frozen=True)
class Finding:
    """What was said of one criterion."""

    said: Said
    quote: str = ""


@dataclass(frozen=True)
class Decided:
    """What counts of it: True met, False unmet, None not assessed."""

    met: bool | None
    quote: str = ""
    """Only one that stands in the answer."""


def read_findings(reply: ChatReply, criteria: Sequence[RubricCriterion]) -> dict[str, Finding]:
    """By the id of the criterion; in the reply they are numbered as they were shown. Raises `JudgeReplyError`."""
    data = reply_object(reply, "criteria")
    numbers = [str(number) for number in range(1, len(criteria) + 1)]
    entries = entries_by_name(data["criteria"], "criterion", numbers, "criterion")
    allowed = get_args(Said)
    return {
        c.id: Finding(*verdict_and_quote(entries[n], allowed, f"criterion {n}: "))
        for n, c in zip(numbers, criteria, strict=True)
    }


def decide(criterion: RubricCriterion, finding: Finding, text: str) -> Decided:
    """A claim that something is there counts only with words of `text` that show it.

    That holds for what is gained and for faults alike; a judgement needs no words.
    """
    if finding.said == "cannot_assess":
        return Decided(None)
    quote = finding.quote if stands_in(finding.quote, text) else ""
    met = finding.said == "met" and (criterion.kind != "evidence" or bool(quote))
    return Decided(met, quote if met else "")


def weigh(rubric: Rubric, decided: Mapping[str, Decided]) -> Verdict:
    """An essential criterion that is unmet, or a pitfall that is met, leaves 0; else the met share of the weight.

    No score where more than `MOST_UNASSESSED` of all weight, or an essential criterion, cannot be assessed. Pitfalls
    weigh in that share only.
    """
    vetoes = [
        c for c in rubric.criteria if (c.essential or c.pitfall) and decided[c.id].met is bool(c.pitfall)
    ]
    evidence = tuple(dict.fromkeys(d.quote for d in decided.values() if d.quote))
    total = sum(c.weight for c in rubric.criteria)
    known = [c for c in rubric.criteria if decided[c.id].met is not None]
    unassessed = 1.0 - sum(c.weight for c in known) / total
    parts = {f"criterion/{c.id}": float(bool(decided[c.id].met)) for c in known}
    parts["assessed"] = round(1.0 - unassessed, 9)
    if vetoes:
        said = "; ".join(_veto_of(c, decided[c.id]) for c in vetoes)
        return Verdict(0.0, layer="rubric", evidence=evidence, explanation=said, parts=parts)
    open_essentials = [c.id for c in rubric.criteria if c.essential and decided[c.id].met is None]
    if open_essentials or unassessed > MOST_UNASSESSED + 1e-9:
        why = (
            f"the essential criterion {open_essentials[0]} cannot be assessed"
            if open_essentials
            else f"{unassessed:.0%} of the rubric cannot be assessed, more than {MOST_UNASSESSED:.0%}"
        )
        return Verdict.abstain(why, "rubric", parts=parts)
    gained = [c for c in known if not c.pitfall]
    if not gained:
        return Verdict.abstain("no criterion that can be gained was assessed", "rubric", parts=parts)
    value = sum(c.weight for c in gained if decided[c.id].met) / sum(c.weight for c in gained)
    missed = "; ".join(f"misses {c.id} ({c.text})" for c in gained if not decided[c.id].met)
    said = missed or "meets every criterion that was assessed"
    return Verdict(value, layer="rubric", evidence=evidence, explanation=said, parts=parts)


def _veto_of(criterion: RubricCriterion, decided: Decided) -> str:
    if criterion.pitfall:
        shown = f": {decided.quote[:120]!r}" if decided.quote else ""
        return f"has the pitfall {criterion.id} ({criterion.text}){shown}"
    return f"misses the essential {criterion.id} ({criterion.text})"


@dataclass(frozen=True)
class RubricLayer:
    """Runs the programmatic criteria, and asks a judge about the others, in one call a reading."""

    judges: Sequence[Judge]
    rubric: Rubric
    readings: int = 1
    seed: int = 0
    cache: ReplyCache | bool | None = None

    async def verdict(self, case: Case, group: TrajectoryGroup) -> Verdict:
        """On one answer."""
        by_program = await self._checked(case, group)
        asked = [c for c in self.rubric.criteria if c.kind != "programmatic"]
        if not asked:
            return _certain(weigh(self.rubric, by_program))
        results = await settle([self._reading(case, asked, number) for number in range(self.readings)])
        readings, failed = readable(results)
        if not readings:
            return Verdict.abstain(
                f"no reading of the rubric could be used: {failed[0]}",
                "rubric",
                calls=self.readings,
                cost_usd=None,
            )
        decided = [
            by_program | {c.id: decide(c, r.value[c.id], case.evidence) for c in asked} for r in readings
        ]
        merged = by_program | {c.id: _merged([d[c.id] for d in decided]) for c in asked}
        verdict = weigh(self.rubric, merged)
        cost = None if failed else total_cost([reading.cost_usd for reading in readings])
        values = [weigh(self.rubric, one).score for one in decided]
        agree = [fmean(d[c.id].met == merged[c.id].met for d in decided) for c in asked]
        return Verdict(
            verdict.score,
            verdict.reason,
            "rubric",
            reliability=fmean(agree) if len(readings) > 1 else None,
            evidence=verdict.evidence,
            explanation=verdict.explanation,
            parts=verdict.parts,
            readings=tuple(values),
            calls=self.readings,
            cost_usd=cost,
        )

    async def _checked(self, case: Case, group: TrajectoryGroup) -> dict[str, Decided]:
        programs = [c for c in self.rubric.criteria if c.kind == "programmatic"]
        scores = [(await score_by(Check(str(c.check), c.reference), [case], group))[0] for c in programs]
        return {
            c.id: Decided(None if s.value is None else s.value >= PASSES_AT)
            for c, s in zip(programs, scores, strict=True)
        }

    async def _reading(self, case: Case, asked: Sequence[RubricCriterion], number: int) -> Any:
        seed = derive("rubric", self.seed, number, case.attempt.key)
        shown = random.Random(seed).sample(list(asked), len(asked))
        judges = [
            told(judge, lambda exact: _schema(len(shown), exact), seed, is_drawn=self.readings > 1)
            for judge in self.judges
        ]
        return await ask(
            judges,
            lambda judge: self.messages(judge, case, shown, seed),
            lambda reply: read_findings(reply, shown),
            purpose="judge/rubric",
            cache=self.cache,
            key_parts={"kind": "rubric", "prompt": prompt_version(_FILE), "reading": number},
        )

    def messages(
        self, judge: Judge, case: Case, shown: Sequence[RubricCriterion], seed: int
    ) -> list[Message]:
        """What a judge is shown. Weights and vetoes are not: they would move its verdicts."""
        listed = "\n".join(f"{number}. {c.text}" for number, c in enumerate(shown, start=1))
        instructions = prompt_text(_FILE).replace("{criteria}", listed)
        opening = Attempt(turns=case.attempt.turns[: case.given], tools=case.attempt.tools)
        tokens = 100 + _TOKENS_A_CRITERION * len(shown)
        answer, given = fitted_for(judge, [case.attempt, opening], instructions, reply_tokens=tokens).attempts
        content = framed(
            [answer],
            _CLOSING,
            seed=seed,
            show_images=judge.takes_images,
            names=["ANSWER"],
            given=len(given.turns),
        )
        return [{"role": "system", "content": instructions}, {"role": "user", "content": content}]


def _merged(decided: Sequence[Decided]) -> Decided:
    """What most readings say of a criterion; None where they are level, or most of them could not tell."""
    met = majority([one.met for one in decided], len(decided))
    quote = next((one.quote for one in decided if one.met is met and one.quote), "")
    return Decided(met, quote)


def _certain(verdict: Verdict) -> Verdict:
    return Verdict(
        verdict.score,
        verdict.reason,
        verdict.layer,
        1.0 if verdict.score is not None else None,
        verdict.evidence,
        verdict.explanation,
        verdict.parts,
    )


def _schema(count: int, is_exact: bool) -> dict[str, Any]:
    """For clients that keep to any schema: exactly so many entries, each with its own number."""
    said = {"type": "string", "enum": list(get_args(Said))}
    if not is_exact:
        entry = object_schema(criterion={"type": "string"}, quote={"type": "string"}, verdict=said)
        return reply_format("criteria", object_schema(criteria={"type": "array", "items": entry}))
    quote = {"type": "string", "maxLength": LONGEST_QUOTE}
    entries = [
        object_schema(criterion={"const": str(number)}, quote=quote, verdict=said)
        for number in range(1, count + 1)
    ]
    exact = {"type": "array", "prefixItems": entries, "items": False, "minItems": count, "maxItems": count}
    return reply_format("criteria", object_schema(criteria=exact))
