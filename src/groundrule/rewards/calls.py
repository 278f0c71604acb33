"""One call of a judge: some attempts of a group, in one order, and what it says of each."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from groundrule._util.seed import derive
from groundrule.data.messages import Message
from groundrule.llm.cache import ReplyCache
from groundrule.rewards.ask import ask
from groundrule.rewards.attempt import Attempt, evidence_keys
from groundrule.rewards.fit import Fitted, fit
from groundrule.rewards.judges import Judge
from groundrule.rewards.parse import parse_chat_reply
from groundrule.rewards.probes import Probed, Probes, insert_probes
from groundrule.rewards.prompt import instructions, judge_messages, prompt_version


@dataclass(frozen=True)
class Said:
    """What one call said of one attempt."""

    score: float
    explanation: str
    elided: float = 0.0
    """Share of the attempt's own text that the judge was not shown, for want of room."""


@dataclass(frozen=True)
class Call:
    """A judge's reading of some attempts."""

    order: list[int]
    """Which attempts were shown, in this order."""
    said: dict[int, Said]
    """By attempt; one that the judge could not decide is not in it."""
    raw: str
    """The judge's reply as it came."""
    cost_usd: float | None
    metrics: dict[str, float] = field(default_factory=dict)
    """What the probes among the attempts showed."""


class Reader(Protocol):
    """Asks a judge about some attempts."""

    @property
    def seed(self) -> int:
        """What the orders are drawn from."""
        ...

    async def read(self, attempts: Sequence[Attempt], order: Sequence[int], number: int) -> Call:
        """Show `attempts[i] for i in order`. `number` tells passes apart that happen to show one order."""
        ...


@dataclass(frozen=True)
class RulerReader:
    """Asks for one overall score of each attempt."""

    judges: Sequence[Judge]
    rubric: str
    seed: int
    cache: ReplyCache | bool | None = None
    show_images: bool | None = None
    """None: decided by the judge's model."""
    probes: Probes = field(default_factory=Probes)

    async def read(self, attempts: Sequence[Attempt], order: Sequence[int], number: int) -> Call:
        """One call, with the probes that it is due."""
        seed = derive("ruler", self.seed, number)
        shown = [attempts[index] for index in order]
        probed = self._probed(shown, seed)
        fitted: list[Fitted] = []  # The last one is that of the judge which answered.
        answer = await ask(
            [judge.for_members(len(probed.shown)) for judge in self.judges],
            lambda judge: self._messages(judge, probed.shown, seed, fitted),
            lambda reply: parse_chat_reply(reply, len(probed.shown)),
            purpose="judge/ruler",
            cache=self.cache,
            key_parts={"kind": "ruler", "prompt": prompt_version(), "pass": number},
        )
        values = [said.score for said in answer.value]
        elided = fitted[-1].elided
        places = zip(order, probed.slots, strict=True)
        return Call(
            order=list(order),
            said={i: Said(values[slot], answer.value[slot].explanation, elided[slot]) for i, slot in places},
            raw=str(answer.reply.content),
            cost_usd=answer.cost_usd,
            metrics=probed.check(values),
        )

    def _probed(self, shown: Sequence[Attempt], seed: int) -> Probed:
        if not (self.probes.canary_rate or self.probes.twin_rate):
            return Probed(list(shown), list(range(len(shown))))
        return insert_probes(shown, self.probes, random.Random(derive("probes", seed, *evidence_keys(shown))))

    def _messages(
        self, judge: Judge, shown: Sequence[Attempt], seed: int, fitted: list[Fitted]
    ) -> list[Message]:
        show_images = judge.takes_images if self.show_images is None else self.show_images
        fitted.append(fitted_for(judge, shown, instructions(self.rubric)))
        return judge_messages(fitted[-1].attempts, rubric=self.rubric, seed=seed, show_images=show_images)


def fitted_for(
    judge: Judge, shown: Sequence[Attempt], instructions: str, *, reply_tokens: int | None = None
) -> Fitted:
    """The attempts as they fit into this judge's context; whole where nothing is known of it."""
    context = judge.context_tokens
    if context is None:
        return Fitted(list(shown), [0.0] * len(shown))
    asked_for = judge.params.get("max_completion_tokens") or judge.params.get("max_tokens")
    return fit(shown, context, instructions=instructions, reply_tokens=asked_for or reply_tokens)
