"""The likelihood judge: how much of an answer do the instructions and the retrieved passage explain?

It asks a frozen language model and needs no key, no network and no generation. For every token t of
an answer it compares two conversations:

    gain(t) = log p(t | system prompt, passage, question, answer so far)
            - log p(t | baseline conversation, answer so far)

The baseline is the bare question under a neutral system prompt, or a neutral conversation where
question and passage cannot be told apart. What a plain mean of gains rewards is reciting the
passage and talking about the instructions, so six things bound it:

- a token is measured against the likelier of two baselines; the second is the conversation itself with the
  passage taken out, so that what the system prompt alone suggests ("the passage holds the answer") earns nothing;
- a token earns at most `max_gain` nats and costs at most as much;
- past `free_run` tokens, a run copied from the passage earns nothing; runs quoted from the system
  prompt, the question or the prompt's labels earn nothing at all;
- a pair of neighbouring tokens earns only the first time that it occurs in the answer;
- the mean gain is multiplied by how well the answer explains the question beyond what the passage does:
  log p(question | passage, answer) - log p(question | passage), squashed, with quoted runs of the question cut
  out first; a summary of the passage says nothing about which question was asked;
- an answer that was cut at its token limit keeps only a part of its score.

It measures grounding. It does not read instructions: style rules, refusals and politeness pass it by.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

from groundrule._util.aio import on_model_thread
from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import Message, text_of
from groundrule.data.score import Score
from groundrule.errors import ModelError
from groundrule.rewards.copying import inside_runs, repeats, run_lengths, without_runs
from groundrule.rewards.situation import Situation, case_of

NEUTRAL_SYSTEM = "You are a helpful assistant."
NEUTRAL_USER = "Say something."
ASK_SYSTEM = "You are a customer who asks a question."
ASK_USER = "{passage}The answer is: {answer} What was your question?"


@dataclass(frozen=True)
class TokenLogprobs:
    """The tokens of one text, and the log-probability of each."""

    tokens: list[str]
    logprobs: list[float]


@dataclass(frozen=True)
class Continuation:
    """`text` as the assistant's turn after `messages`."""

    messages: list[Message]
    text: str


class TextModel(Protocol):
    """A frozen language model that can say how likely given texts are."""

    def logprobs(self, continuations: Sequence[Continuation]) -> list[TokenLogprobs]:
        """Texts in the order given. What the conversations share at their start is computed once."""
        ...


class LikelihoodSettings(BaseModel):
    """The bounds against gaming; `docs/likelihood-judge.md` shows what each of them does."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_gain: float = Field(default=1.0, gt=0)
    """Nats that one token can earn or cost."""
    free_run: int = Field(default=10, ge=1)
    """Tokens of one run copied from the passage that earn as usual."""
    quote_run: int = Field(default=4, ge=1)
    """Runs of at least so many tokens from the system prompt, the question or labels earn nothing."""
    repeats_earn: bool = False
    """True: a pair of tokens earns every time that it occurs in the answer."""
    spec_earns: bool = False
    """True: what the system prompt alone explains earns too."""
    cut_factor: float = Field(default=0.5, gt=0, le=1)
    """What is left of the score of an answer that was cut at its token limit."""
    relevance_middle: float = 0.0
    """Nats per question token at which relevance is one half."""
    relevance_scale: float | None = Field(default=0.1, gt=0)
    """Nats per question token over which the odds of relevance grow by e; None: relevance is not looked at."""
    relevance_floor: float = Field(default=0.4, ge=0, le=1)
    """The least that relevance leaves of a score: a good answer to a short question may be misjudged."""


class LikelihoodJudge:
    """A `Scorer` over a frozen model. Values are in 0..1; `parts` keep what they are made of."""

    def __init__(self, model: TextModel, settings: LikelihoodSettings | None = None) -> None:
        self.model = model
        self.settings = settings or LikelihoodSettings()

    async def score(self, group: TrajectoryGroup) -> list[Score]:
        """One score a member; a member without an answer gets none, with the reason."""
        return await on_model_thread(self.score_now, group)

    def score_now(self, group: TrajectoryGroup) -> list[Score]:
        """The same, on the calling thread."""
        cases = [case_of(t, group) for t in group.trajectories]
        try:
            values = iter(self._judge([case for case in cases if not isinstance(case, str)]))
        except ModelError as error:  # The model cannot read this conversation, for example its images.
            return [Score.none(f"the judge's model refused: {error}") for _ in cases]
        return [Score.none(case) if isinstance(case, str) else next(values) for case in cases]

    def _judge(self, cases: list[tuple[Situation, str]]) -> list[Score]:
        if not cases:
            return []
        full = self.model.logprobs([Continuation(s.messages, a) for s, a in cases])
        base = self._baselines(cases)
        relevance = self._relevance(cases) if self.settings.relevance_scale else [None] * len(cases)
        return [
            self._score(situation, f, b, r)
            for (situation, _), f, b, r in zip(cases, full, base, relevance, strict=True)
        ]

    def _baselines(self, cases: list[tuple[Situation, str]]) -> list[TokenLogprobs]:
        """For every token the likelier of the baselines."""
        bare = self.model.logprobs([Continuation(_baseline(s), a) for s, a in cases])
        if self.settings.spec_earns or any(s.passage is None for s, _ in cases):
            return bare
        told = self.model.logprobs([Continuation(_without_passage(s), a) for s, a in cases])
        pairs = zip(bare, told, strict=True)
        return [TokenLogprobs(b.tokens, list(map(max, b.logprobs, t.logprobs))) for b, t in pairs]

    def _relevance(self, cases: list[tuple[Situation, str]]) -> list[float | None]:
        """Gain per question token from reading the answer beside the passage, in nats; None without a question."""
        asked: list[Continuation] = []
        for situation, answer in cases:
            if situation.question is None:
                return [None] * len(cases)
            rest = without_runs(answer, situation.question, 3)
            asked.append(_asking(rest, situation))
            asked.append(_asking("", situation))
        result = self.model.logprobs(asked)
        return [
            fmean(max(-2.0, min(2.0, w - o)) for w, o in zip(with_it.logprobs, without.logprobs, strict=True))
            for with_it, without in zip(result[::2], result[1::2], strict=True)
        ]

    def _score(
        self, situation: Situation, full: TokenLogprobs, base: TokenLogprobs, relevance: float | None
    ) -> Score:
        bound, limits = self.settings.max_gain, self.settings
        gains = [f - b for f, b in zip(full.logprobs, base.logprobs, strict=True)]
        credits = [max(-bound, min(bound, g)) / bound for g in gains]
        copied = run_lengths(full.tokens, situation.passage or "")
        quoted = inside_runs(
            full.tokens, [situation.system, situation.question or "", situation.frame], limits.quote_run
        )
        repeated = repeats(full.tokens)
        for i, credit in enumerate(credits):
            if quoted[i] or (repeated[i] and not limits.repeats_earn) or copied[i] > limits.free_run:
                credits[i] = min(credit, 0.0)
        grounding = fmean(credits)
        factor = 1.0
        if relevance is not None and limits.relevance_scale is not None:
            share = 1 / (1 + math.exp((limits.relevance_middle - relevance) / limits.relevance_scale))
            factor = max(limits.relevance_floor, share)
        if situation.is_cut:
            factor *= limits.cut_factor
        raw = grounding * factor if grounding > 0 else grounding
        parts = {
            "raw": raw,
            "gain_nats": fmean(gains),
            "grounding": grounding,
            "copied_run": float(max(copied, default=0)),
        }
        if relevance is not None:
            parts["relevance"] = relevance
        return Score(value=_unit(raw), explanation=_explain(full.tokens, gains, parts), parts=parts, cost=0.0)


def _unit(raw: float) -> float:
    """Raw values, mostly between 0 and 0.6, spread monotonically over 0..1."""
    return 1 / (1 + math.exp(-6 * (raw - 0.25)))


def _baseline(situation: Situation) -> list[Message]:
    asked = situation.question or NEUTRAL_USER
    return [{"role": "system", "content": NEUTRAL_SYSTEM}, {"role": "user", "content": asked}]


def _without_passage(situation: Situation) -> list[Message]:
    """The conversation as it would be had nothing been retrieved."""
    passage = situation.passage or ""
    return [
        {**m, "content": text_of(m.get("content")).replace(passage, "")} if m.get("role") == "user" else m
        for m in situation.messages
    ]


def _asking(answer: str, situation: Situation) -> Continuation:
    passage = f"{situation.passage}\n\n" if situation.passage else ""
    asked = ASK_USER.replace("{passage}", passage).replace("{answer}", answer or "...")
    messages: list[Message] = [{"role": "system", "content": ASK_SYSTEM}, {"role": "user", "content": asked}]
    return Continuation(messages, situation.question or "")


def _explain(tokens: Sequence[str], gains: Sequence[float], parts: dict[str, float]) -> str:
    """In words: the numbers, and the spans that the passage supports least."""
    spans = least_supported(tokens, gains)
    said = ", ".join(f"{text!r} ({value:+.2f})" for text, value in spans)
    lead = f"grounding {parts['grounding']:+.2f}"
    if "relevance" in parts:
        lead += f", relevance {parts['relevance']:+.2f} nats"
    return f"{lead}; least supported: {said}" if said else f"{lead}; every span is supported"


def least_supported(
    tokens: Sequence[str], gains: Sequence[float], *, most: int = 3
) -> list[tuple[str, float]]:
    """Up to `most` spans of neighbouring tokens whose mean gain is below 0.1 nats, worst first."""
    spans: list[tuple[str, float]] = []
    start = 0
    while start < len(tokens):
        end = start
        while end < len(tokens) and gains[end] < 0.1:
            end += 1
        text = "".join(tokens[start:end]).strip()
        if end > start and re.search(r"\w", text):
            spans.append((text, fmean(gains[start:end])))
        start = max(end, start + 1)
    return sorted(spans, key=lambda span: span[1] * len(span[0]))[:most]
