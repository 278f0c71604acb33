"""Preferences: which of several answers to one prompt is better, and who says so.

A `Ranking` is one judgement of K answers, ties allowed. A `PreferencePair` is one comparison in it. A pair read
from a file is a ranking of two, so there is one form for people, judges, rules and constitutions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import combinations
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from groundrule.data.answers import Answer, conversation_of
from groundrule.data.messages import Message, Tools, conversation_key
from groundrule.errors import DataError

Name = Annotated[str | None, BeforeValidator(lambda v: (str(v) if type(v) is int else v) or None)]
"""A number is read as text, and an empty text as no name."""
Margin = Annotated[float, Field(strict=True, allow_inf_nan=False, ge=0)]
Certainty = Annotated[float, Field(strict=True, allow_inf_nan=False, gt=0.5, le=1)]


class _Judged(BaseModel):
    """What a ranking and a pair have in common."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    prompt: Annotated[list[Message], BeforeValidator(conversation_of)]
    """The conversation that was answered, system prompt included."""
    annotator: Name = None
    """The person, or the judge's model. None: not said."""
    source: Name = None
    """What kind of judgement it is: `human`, `ruler`, `rule`, `constitution`, or any other word."""
    certainty: Certainty = 1.0
    """The probability that this order is right, above 0.5 up to 1: a soft label."""
    tools: Tools | None = None
    """The tools that the agent could call."""
    scenario_id: Name = None
    metadata: dict[str, Any] = Field(default_factory=dict)

    @cached_property
    def prompt_key(self) -> str:
        """Equal exactly for prompts that mean the same, with the same tools."""
        return conversation_key(self.prompt, self.tools)


class PreferencePair(_Judged):
    """`chosen` is better than `rejected`."""

    chosen: Answer
    rejected: Answer
    margin: Margin | None = None
    """By how much, on the source's own scale. None: not said."""

    @model_validator(mode="after")
    def _two_answers(self) -> Self:
        if self.chosen.key == self.rejected.key:
            raise DataError("the chosen answer is the rejected one; leave the pair out", column="rejected")
        if self.chosen.id == self.rejected.id:
            raise DataError(
                f"both answers have the id {self.chosen.id!r}; give each its own, or none", column="rejected"
            )
        return self

    def ranking(self) -> Ranking:
        """The same as a ranking of two; its only pair is this one."""
        return Ranking.model_construct(
            answers=[self.chosen, self.rejected],
            order=[[self.chosen.id], [self.rejected.id]],
            margins=None if self.margin is None else [self.margin],
            **{name: getattr(self, name) for name in _Judged.model_fields},
        )


def _tiers(order: Any) -> Any:
    """A tier of one may be written as the id alone."""
    if not isinstance(order, list | tuple):
        return order
    tiers = [tier if isinstance(tier, list | tuple) else [tier] for tier in order]
    return [[str(i) if type(i) is int else i for i in tier] for tier in tiers]


class Ranking(_Judged):
    """All answers to one prompt that one annotator put in order, best first."""

    answers: list[Answer]
    order: Annotated[list[list[str]], BeforeValidator(_tiers)]
    """Tiers of answer ids, best first; the answers of one tier are tied. Every answer is in one."""
    margins: list[Margin] | None = None
    """By how much each tier beats the next, one number fewer than there are tiers. None: not said."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        _check_answers(self.answers)
        _check_order([a.id for a in self.answers], self.order)
        if self.margins is not None and len(self.margins) != len(self.order) - 1:
            raise DataError(
                f"there are {len(self.margins)} margins between {len(self.order)} tiers; "
                f"write {len(self.order) - 1}, one between each tier and the next",
                column="margins",
            )
        _check_scores([[self.answers[i] for i in tier] for tier in self.tiers])
        return self

    @property
    def tiers(self) -> list[list[int]]:
        """The order as positions in `answers`."""
        place = {answer.id: i for i, answer in enumerate(self.answers)}
        return [[place[name] for name in tier] for tier in self.order]

    @property
    def ties(self) -> int:
        """How many pairs of answers are tied; no preference pair is made of them."""
        return sum(len(tier) * (len(tier) - 1) // 2 for tier in self.order)

    def pairs(self) -> list[PreferencePair]:
        """Every two answers of different tiers, best first.

        The margin is the sum of `margins` between their tiers; where there are none, the difference of their scores.
        """
        shared = {name: getattr(self, name) for name in _Judged.model_fields}
        return [
            PreferencePair.model_construct(
                chosen=self.answers[better],
                rejected=self.answers[worse],
                margin=self._margin(upper, lower, better, worse),
                **shared,
            )
            for (upper, above), (lower, below) in combinations(enumerate(self.tiers), 2)
            for better in above
            for worse in below
        ]

    def _margin(self, upper: int, lower: int, better: int, worse: int) -> float | None:
        if self.margins is not None:
            return sum(self.margins[upper:lower])
        high, low = self.answers[better].score, self.answers[worse].score
        return None if high is None or low is None else high - low


def _check_answers(answers: Sequence[Answer]) -> None:
    if len(answers) < 2:
        raise DataError(
            f"there are {len(answers)} answers; a ranking compares at least two", column="answers"
        )
    by_id: dict[str, int] = {}
    by_key: dict[str, str] = {}
    for number, answer in enumerate(answers):
        where = f"answers.{number}"
        if answer.key in by_key:
            raise DataError(
                f"answer {answer.id!r} says the same as answer {by_key[answer.key]!r}; keep one of them",
                column=where,
            )
        if answer.id in by_id:
            raise DataError(f"the id {answer.id!r} is taken; give each answer its own", column=f"{where}.id")
        by_id[answer.id], by_key[answer.key] = number, answer.id


def _check_order(ids: Sequence[str], order: Sequence[Sequence[str]]) -> None:
    ranked = [name for tier in order for name in tier]
    if unknown := [name for name in ranked if name not in ids]:
        what = f"{unknown[0]!r} is the id of no answer; the ids are {', '.join(map(repr, ids))}"
    elif twice := [name for name in ids if ranked.count(name) > 1]:
        what = f"{twice[0]!r} is ranked twice; name each answer once"
    elif missing := [name for name in ids if name not in ranked]:
        what = f"answer {missing[0]!r} has no place; rank it, or take it out of 'answers'"
    elif not all(order):
        what = "a tier is empty; take it out"
    else:
        return
    raise DataError(what, column="order")


def _check_scores(tiers: Sequence[Sequence[Answer]]) -> None:
    scored = [(t, a) for t, tier in enumerate(tiers) for a in tier if a.score is not None]
    for (upper, high), (lower, low) in combinations(scored, 2):
        if upper < lower and (high.score or 0.0) < (low.score or 0.0):
            raise DataError(
                f"answer {high.id!r} is ranked above {low.id!r}, but has the lower score ({high.score} against "
                f"{low.score}); higher is better: turn the order round, or leave the scores out",
                column="order",
            )
