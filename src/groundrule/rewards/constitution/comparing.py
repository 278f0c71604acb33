"""Two answers before a judge, by a drawn principle, in both orders: the probability that the first one is better.

As in the second stage of Bai et al. (2022), where p comes from the log-probabilities of the two letters. What differs:
both orders are asked and averaged (Lee et al. 2023, RLAIF), so that a liking for one letter cancels; a judge without
log-probabilities is asked several times, p = (wins + 1) / (samples + 2). Where the judge thinks aloud before it
chooses, its letter is nearly certain whatever it thinks, and p is held to 0.4 .. 0.6 in each order.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean
from typing import Any

from groundrule._util.aio import or_raise, settle
from groundrule._util.seed import derive
from groundrule.data.messages import Message
from groundrule.data.score import total_cost
from groundrule.errors import ConfigError, JudgeError, JudgeReplyError, ProviderError
from groundrule.llm.cache import ReplyCache
from groundrule.llm.params import is_reasoning_model
from groundrule.llm.providers import JudgeLike
from groundrule.rewards.ask import Reading, ask
from groundrule.rewards.attempt import Attempt, evidence_keys
from groundrule.rewards.calls import fitted_for
from groundrule.rewards.constitution.letters import Chosen, read_choice
from groundrule.rewards.constitution.principles import Constitution, Principle
from groundrule.rewards.judges import Judge, judge_chain
from groundrule.rewards.parse import reply_text
from groundrule.rewards.prompt import framed
from groundrule.rewards.prompt_files import prompt_text, prompt_version

logger = logging.getLogger(__name__)

CLAMP = (0.4, 0.6)
"""What p is held to after thinking aloud."""
LISTED = 20
"""Texts whose log-probabilities are asked for: the most that endpoints give."""
LETTER_TOKENS = 16
THINKING_TOKENS = 400
PURPOSE = "judge/constitution"

_FILE = "constitution_choice.md"
_CHOOSE = "{question}\nOptions: (A) or (B). Answer with the letter A or B and nothing else."
_THINK = (
    "{question}\nThink step by step about how (A) and (B) each fare by this, in a few sentences. "
    "Do not choose yet."
)
_CHOOSE_NOW = "So which is it, (A) or (B)? Answer with the letter A or B and nothing else."
_REFUSALS = (400, 403, 404, 422)

_said: set[str] = set()


@dataclass(frozen=True)
class Opinion:
    """What a judge thinks of two answers by one principle."""

    principle: str
    orders: tuple[float, float]
    """The probability that the first answer is better: shown as (A), and shown as (B)."""
    by: str
    """`logprobs`, or `samples` where an order had to be sampled."""
    calls: int
    cost_usd: float | None
    mass: float | None = None
    """See `Chosen.mass`; the lower one of both orders. None: sampled."""
    rationales: tuple[str, ...] = ()
    """What the judge thought aloud, in each order."""

    @property
    def p(self) -> float:
        """That the first answer is better; both orders count alike."""
        return fmean(self.orders)

    @property
    def orders_agree(self) -> bool:
        """Whether both orders favour the same answer, or neither favours any."""
        first, second = (_rounded(p) for p in self.orders)
        return first * second > 0 or first == second == 0


def is_tie(p: float) -> bool:
    """p is 0.5, but for rounding."""
    return _rounded(p) == 0


def _rounded(p: float) -> float:
    return round(p - 0.5, 9)


@dataclass(frozen=True)
class _Order:
    """p(A) in one order."""

    p: float
    calls: int
    cost_usd: float | None
    mass: float | None
    rationale: str


@dataclass(frozen=True)
class Comparer:
    """Asks one judge about pairs of answers."""

    judge: Judge
    constitution: Constitution
    principles: int = 1
    """Drawn for each pair; every one is asked about on its own."""
    think: bool = False
    """Let the judge think aloud before it chooses."""
    logprobs: bool = True
    """Take p from log-probabilities where the judge gives them."""
    samples: int = 4
    """How often each order is asked where it does not."""
    seed: int = 0
    cache: ReplyCache | bool | None = None
    _refused: set[str] = field(default_factory=set, init=False, repr=False, compare=False)
    """Models that refused to give log-probabilities."""

    def __post_init__(self) -> None:
        for name in ("principles", "samples"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} is {getattr(self, name)}; take 1 or more")

    async def compare(self, first: Attempt, second: Attempt) -> list[Opinion]:
        """One opinion for each principle that is drawn for this pair, whichever of the two is named first.

        Raises `JudgeError` or `LlmError` where an order of one of them cannot be read.
        """
        pair = sorted(evidence_keys([first, second]))
        count = min(self.principles, len(self.constitution.principles))
        drawn = self.constitution.draw(count, "comparison", self.seed, *pair)
        return or_raise(await settle([self.opinion(first, second, p) for p in drawn]))

    async def opinion(self, first: Attempt, second: Attempt, principle: Principle) -> Opinion:
        """By one principle."""
        results = await settle(
            [self._order([first, second], principle), self._order([second, first], principle)]
        )
        one, other = or_raise(results)
        costs = [one.cost_usd, other.cost_usd]
        masses = [one.mass, other.mass]
        return Opinion(
            principle=principle.id,
            orders=(one.p, 1.0 - other.p),
            by="samples" if None in masses else "logprobs",
            calls=one.calls + other.calls,
            cost_usd=total_cost(costs),
            mass=None if None in masses else min(m for m in masses if m is not None),
            rationales=(one.rationale, other.rationale) if self.think else (),
        )

    def calls_for(self, pairs: int) -> int:
        """The most calls that so many pairs take, of a judge that gives log-probabilities if it is asked for them."""
        letters = self.samples if not self.logprobs or is_reasoning_model(self.judge.model) else 1
        return 2 * pairs * min(self.principles, len(self.constitution.principles)) * (letters + self.think)

    async def _order(self, shown: Sequence[Attempt], principle: Principle) -> _Order:
        question = principle.comparison_question
        what = (self.seed, principle.id, *evidence_keys(shown))
        if not self.think:
            messages = self._messages(shown, principle, _CHOOSE.format(question=question))
            return await self._chosen(messages, what, "")
        messages = self._messages(shown, principle, _THINK.format(question=question))
        judge = self._told(THINKING_TOKENS, {"seed": _seed("thinking", *what)})
        thought = await ask(
            [judge],
            lambda _: messages,
            lambda reply: reply_text(reply, may_be_cut=True),
            purpose=PURPOSE,
            cache=self.cache,
            key_parts={"kind": "constitution thinking", "prompt": prompt_version(_FILE)},
            max_reasks=0,
        )
        now = [
            *messages,
            {"role": "assistant", "content": thought.value},
            {"role": "user", "content": _CHOOSE_NOW},
        ]
        chosen = await self._chosen(now, what, thought.value)
        low, high = CLAMP
        return replace(
            chosen,
            p=min(max(chosen.p, low), high),
            calls=chosen.calls + 1,
            cost_usd=total_cost([chosen.cost_usd, thought.cost_usd]),
        )

    async def _chosen(self, messages: list[Message], what: tuple[object, ...], rationale: str) -> _Order:
        """p(A) from log-probabilities; where there are none, the reply counts as the first of the samples."""
        readings: list[Reading[Chosen]] = []
        calls = 0
        if self.logprobs and self.judge.model not in self._refused:
            calls = 1
            first = await self._with_logprobs(messages, what)
            if first is not None and (p := first.value.p) is not None:
                return _Order(p, 1, first.cost_usd, first.value.mass, rationale)
            readings = [first] if first is not None else []
            self._say_once()
        more = [self._letter(messages, what, number) for number in range(len(readings), self.samples)]
        results = await settle(more)
        faults = [r for r in results if isinstance(r, JudgeReplyError)]
        readings += or_raise(r for r in results if not isinstance(r, JudgeReplyError))
        letters = [r.value.is_a for r in readings if r.value.is_a is not None]
        if not letters:
            raise JudgeError(f"none of {self.samples} replies names a choice: {faults[0]}") from faults[0]
        return _Order(
            p=(sum(letters) + 1) / (len(letters) + 2),
            calls=calls + len(results),
            cost_usd=total_cost([r.cost_usd for r in readings]),
            mass=None,
            rationale=rationale,
        )

    async def _with_logprobs(
        self, messages: list[Message], what: tuple[object, ...]
    ) -> Reading[Chosen] | None:
        """None where the judge refuses the request with them, or writes no letter at all."""
        try:
            return await self._letter(messages, what, 0, {"logprobs": True, "top_logprobs": LISTED})
        except JudgeReplyError as error:
            logger.info("judge %s: %s", self.judge.model, error)
        except JudgeError as error:
            cause = error.__cause__
            if not isinstance(cause, ProviderError) or cause.status not in _REFUSALS:
                raise
            self._refused.add(self.judge.model)
            logger.info("judge %s: %s", self.judge.model, cause)
        return None

    async def _letter(
        self,
        messages: list[Message],
        what: tuple[object, ...],
        number: int,
        extra: Mapping[str, Any] | None = None,
    ) -> Reading[Chosen]:
        judge = self._told(LETTER_TOKENS, {"seed": _seed("letter", number, *what), **(extra or {})})
        return await ask(
            [judge],
            lambda _: messages,
            read_choice,
            purpose=PURPOSE,
            cache=self.cache,
            key_parts={"kind": "constitution", "prompt": prompt_version(_FILE), "sample": number},
            max_reasks=0,
        )

    def _told(self, max_tokens: int, params: Mapping[str, Any]) -> Judge:
        """The judge with these parameters, unless its own say otherwise; a model that reasons sets its own limit."""
        limit = {} if is_reasoning_model(self.judge.model) else {"max_tokens": max_tokens}
        return replace(self.judge, params={"temperature": 1.0, **limit, **params, **self.judge.params})

    def _messages(self, shown: Sequence[Attempt], principle: Principle, closing: str) -> list[Message]:
        instructions = prompt_text(_FILE).replace("{principle}", principle.comparison_question)
        fitted = fitted_for(self.judge, shown, instructions, reply_tokens=LETTER_TOKENS + THINKING_TOKENS)
        content = framed(
            fitted.attempts,
            closing,
            seed=self.seed,
            show_images=self.judge.takes_images,
            names=("(A)", "(B)"),
        )
        return [{"role": "system", "content": instructions}, {"role": "user", "content": content}]

    def _say_once(self) -> None:
        name = f"{self.judge.model} {self.judge.endpoint}"
        if name not in _said:
            _said.add(name)
            logger.warning(
                "judge %s gives no log-probabilities for A and B: each order is asked %d times instead",
                self.judge.model,
                self.samples,
            )


def comparing_judge(
    judge: JudgeLike, params: Mapping[str, Any] | None = None, *, client: Any = None
) -> Judge:
    """A judge that can be asked; raises `ConfigError` for one that only scores."""
    found = judge_chain(judge, params, client=client)[0]
    if isinstance(found, Judge):
        return found
    raise ConfigError(
        f"{judge!r} scores groups and reads no principles; name a chat model, such as 'openai/gpt-4.1'"
    )


def _seed(*what: object) -> int:
    """31 bits, which every endpoint takes."""
    return derive("constitution", *what) >> 32
