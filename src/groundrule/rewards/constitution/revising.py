"""Critique and revision: an answer is criticised by a drawn principle and written anew, round after round.

The first stage of Bai et al. (2022). A chat model answers, criticises and revises in the turns of one conversation; in
each round it sees the prompt and the latest answer, not the rounds before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from groundrule._util.seed import derive
from groundrule.data.messages import Message, conversation_key
from groundrule.errors import ConfigError, JudgeReplyError
from groundrule.llm.cache import ReplyCache
from groundrule.llm.params import is_reasoning_model
from groundrule.rewards.ask import ask
from groundrule.rewards.constitution.principles import Constitution, Principle
from groundrule.rewards.judges import Judge
from groundrule.rewards.parse import reply_text

MAX_TOKENS = 256
"""Of a critique or a revision, where the critic's parameters do not say."""
TEMPERATURE = 0.7

_CRITIQUE = "{request} Name concrete points, in at most three sentences."
_REVISE = "{request} Write only the new answer, as it is to be sent."

Keep = Literal["all", "last"]

FAULTS = {"empty": "empty", "refusal": "refused", "truncated": "cut"}
"""Why there is no text, by the kind of error; others are `unusable`."""


@dataclass(frozen=True)
class Round:
    """One critique and what became of the answer."""

    principle: str
    critique: str | None
    revision: str | None
    fault: str | None = None
    """Why the critique or the revision is None: `empty`, `refused`, `cut` (a revision at its length limit), or
    `unusable`."""


@dataclass(frozen=True)
class Revised:
    """A prompt, the first answer, and its rounds."""

    prompt: list[Message]
    answer: str | None
    """None: the model gave none, so there are no rounds."""
    rounds: list[Round] = field(default_factory=list)
    fault: str | None = None
    """Why there is no answer."""

    def rows(self, keep: Keep = "last") -> list[dict[str, Any]]:
        """Conversations to train on, each with a revision as its answer and how it came about."""
        rows = [
            self._row(number, one.revision)
            for number, one in enumerate(self.rounds, start=1)
            if one.revision is not None
        ]
        return rows if keep == "all" else rows[-1:]

    def _row(self, number: int, revision: str) -> dict[str, Any]:
        done = self.rounds[:number]
        return {
            "messages": [*self.prompt, {"role": "assistant", "content": revision}],
            "metadata": {
                "round": number,
                "principles": ", ".join(one.principle for one in done),
                "critiques": "\n\n".join(one.critique or "" for one in done),
                "first_answer": self.answer,
            },
        }


@dataclass(frozen=True)
class Reviser:
    """Revises the answers of one model by the critiques of one."""

    critic: Judge
    """Who criticises and revises."""
    constitution: Constitution
    rounds: int = 2
    exemplars: int = 1
    """How many of the constitution's are shown first."""
    seed: int = 0
    answerer: Judge | None = None
    """Who answers prompts that come without an answer; None: the critic."""
    cache: ReplyCache | bool | None = None

    def __post_init__(self) -> None:
        if self.rounds < 1 or self.exemplars < 0:
            raise ConfigError(
                f"rounds is {self.rounds} and exemplars is {self.exemplars}; take at least 1 round and 0 exemplars"
            )

    async def revise(self, prompt: Sequence[Message], answer: str | None = None) -> Revised:
        """The rounds of one prompt. A round that gives no text is counted as a fault, and the next one goes on from the
        answer before it. Raises `LlmError` or `JudgeError` where the model cannot be asked."""
        key = conversation_key(prompt, None)
        if answer is None:
            answer, fault = await self._said(
                self.answerer or self.critic, list(prompt), "answer", key, may_be_cut=True
            )
            if answer is None:
                return Revised(list(prompt), None, fault=fault)
        rounds: list[Round] = []
        current = answer
        for number, principle in enumerate(self.drawn(prompt)):
            rounds.append(await self._round(list(prompt), current, principle, f"{key}/{number}"))
            current = rounds[-1].revision or current
        return Revised(list(prompt), answer, rounds)

    def drawn(self, prompt: Sequence[Message]) -> list[Principle]:
        """The principle of each round for this prompt."""
        return self.constitution.draw(self.rounds, "revision", self.seed, conversation_key(prompt, None))

    def critique_messages(
        self, prompt: Sequence[Message], answer: str, principle: Principle
    ) -> list[Message]:
        """What is shown when a critique is asked for."""
        opening = [m for m in prompt if m.get("role") in ("system", "developer")]
        return [*opening, *self._shown_before(), *prompt[len(opening) :], *_asked(answer, principle)]

    async def _round(self, prompt: list[Message], answer: str, principle: Principle, key: str) -> Round:
        messages = self.critique_messages(prompt, answer, principle)
        critique, fault = await self._said(self.critic, messages, "critique", key, may_be_cut=True)
        if critique is None:
            return Round(principle.id, None, None, fault)
        messages = [*messages, *_asked_anew(critique, principle)]
        revision, fault = await self._said(self.critic, messages, "revision", key)
        return Round(principle.id, critique, revision, fault)

    def _shown_before(self) -> list[Message]:
        turns: list[Message] = []
        for exemplar in self.constitution.exemplars[: self.exemplars]:
            principle = self.constitution.principle(exemplar.principle)
            turns += [
                {"role": "user", "content": exemplar.prompt},
                *_asked(exemplar.answer, principle),
                *_asked_anew(exemplar.critique, principle),
                {"role": "assistant", "content": exemplar.revision},
            ]
        return turns

    async def _said(
        self, judge: Judge, messages: list[Message], what: str, key: str, *, may_be_cut: bool = False
    ) -> tuple[str | None, str | None]:
        """The text, or why there is none."""
        told = _told(judge, {"seed": derive("revision", self.seed, what, key) >> 32})
        try:
            reading = await ask(
                [told],
                lambda _: messages,
                lambda reply: reply_text(reply, may_be_cut=may_be_cut).strip(),
                purpose=f"constitution/{what}",
                cache=self.cache,
                key_parts={"kind": f"constitution {what}"},
                max_reasks=0,
            )
        except JudgeReplyError as error:
            return None, FAULTS.get(error.kind, "unusable")
        return reading.value, None


def _told(judge: Judge, params: Mapping[str, Any]) -> Judge:
    """The judge's own parameters win; a model that reasons sets its own limit."""
    limit = {} if is_reasoning_model(judge.model) else {"max_tokens": MAX_TOKENS}
    return replace(judge, params={"temperature": TEMPERATURE, **limit, **params, **judge.params})


def _asked(answer: str, principle: Principle) -> list[Message]:
    return [
        {"role": "assistant", "content": answer},
        {"role": "user", "content": _CRITIQUE.format(request=principle.critique_request)},
    ]


def _asked_anew(critique: str, principle: Principle) -> list[Message]:
    return [
        {"role": "assistant", "content": critique},
        {"role": "user", "content": _REVISE.format(request=principle.revision_request)},
    ]
