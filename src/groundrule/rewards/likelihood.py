"""The likelihood judge: how much of an answer do the instructions and the retrieved passage explain?

It asks a frozen language model and needs no key, no network and no generation. For every token t of
an answer it compares two conversations:

    gain(t) = log p(t | system prompt, passage, question, answer so far)
            - log p(t | baseline conversation, answer so far)

The baseline is the bare question under a neutral system prompt, or a neutral conversation where
question and passage cannot be told apart. What a plain mean of gains rewards is reciting the
passage, so five things bound it:

- a token earns at most `max_gain` nats and costs at most as much;
- past `free_run` tokens, a run copied from the passage earns nothing; runs quoted from the system
  prompt, the question or the prompt's labels earn nothing at all;
- a pair of neighbouring tokens earns only the first time that it occurs in the answer;
- the mean gain is multiplied by how well the answer explains the question: the gain in
  log p(question | answer), squashed into 0..1, with quoted runs of the question cut out first;
- an answer that was cut at its token limit keeps only a part of its score.

It measures grounding. It does not read instructions: style rules, refusals and politeness pass it by.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Protocol

from pydantic import BaseModel, ConfigDict, Field

from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import Message, system_prompt_of, text_of
from groundrule.data.score import Score
from groundrule.data.trajectory import Trajectory
from groundrule.errors import ModelError

NEUTRAL_SYSTEM = "You are a helpful assistant."
NEUTRAL_USER = "Say something."
ASK_SYSTEM = "You are a customer who asks a question."
ASK_USER = "The answer is: {answer} What was your question?"

_LABEL = re.compile(r"\[?\b(?:retrieved )?(?:context|passage|documents?)\b\]?:", re.IGNORECASE)
_QUESTION_LABEL = re.compile(r"\n\s*question:", re.IGNORECASE)


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
    cut_factor: float = Field(default=0.5, gt=0, le=1)
    """What is left of the score of an answer that was cut at its token limit."""
    relevance_middle: float = 0.25
    """Nats per question token at which relevance is one half."""
    relevance_scale: float | None = Field(default=0.15, gt=0)
    """Nats per question token over which the odds of relevance grow by e; None: relevance is not looked at."""


@dataclass(frozen=True)
class Situation:
    """What stood before an answer, taken apart."""

    messages: list[Message]
    system: str
    question: str | None
    passage: str | None
    frame: str
    """The user's words that are neither question nor passage."""
    is_cut: bool = False
    """The answer ended at its token limit, not by itself."""


class LikelihoodJudge:
    """A `Scorer` over a frozen model. Values are in 0..1; `parts` keep what they are made of."""

    def __init__(self, model: TextModel, settings: LikelihoodSettings | None = None) -> None:
        self.model = model
        self.settings = settings or LikelihoodSettings()

    async def score(self, group: TrajectoryGroup) -> list[Score]:
        """One score a member; a member without an answer gets none, with the reason."""
        import asyncio

        return await asyncio.to_thread(self.score_now, group)

    def score_now(self, group: TrajectoryGroup) -> list[Score]:
        """The same, on the calling thread."""
        cases = [_case(t, group) for t in group.trajectories]
        try:
            values = iter(self._judge([case for case in cases if not isinstance(case, str)]))
        except ModelError as error:  # The model cannot read this conversation, for example its images.
            return [Score.none(f"the judge's model refused: {error}") for _ in cases]
        return [Score.none(case) if isinstance(case, str) else next(values) for case in cases]

    def _judge(self, cases: list[tuple[Situation, str]]) -> list[Score]:
        if not cases:
            return []
        full = self.model.logprobs([Continuation(s.messages, a) for s, a in cases])
        base = self.model.logprobs([Continuation(_baseline(s), a) for s, a in cases])
        relevance = self._relevance(cases) if self.settings.relevance_scale else [None] * len(cases)
        return [
            self._score(situation, f, b, r)
            for (situation, _), f, b, r in zip(cases, full, base, relevance, strict=True)
        ]

    def _relevance(self, cases: list[tuple[Situation, str]]) -> list[float | None]:
        """Gain per question token from reading the answer, in nats; None where there is no question."""
        asked: list[Continuation] = []
        for situation, answer in cases:
            if situation.question is None:
                return [None] * len(cases)
            rest = _without_runs(answer, situation.question, 3)
            asked.append(_asking(rest, situation.question))
            asked.append(_asking("", situation.question))
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
        copied = _run_lengths(full.tokens, situation.passage or "")
        quoted = _inside_runs(
            full.tokens, [situation.system, situation.question or "", situation.frame], limits.quote_run
        )
        repeated = _repeats(full.tokens)
        for i, credit in enumerate(credits):
            if quoted[i] or (repeated[i] and not limits.repeats_earn) or copied[i] > limits.free_run:
                credits[i] = min(credit, 0.0)
        grounding = fmean(credits)
        factor = 1.0
        if relevance is not None and limits.relevance_scale is not None:
            factor = 1 / (1 + math.exp((limits.relevance_middle - relevance) / limits.relevance_scale))
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


def _case(trajectory: Trajectory, group: TrajectoryGroup) -> tuple[Situation, str] | str:
    """The situation and the answer, or why there is nothing to score."""
    turns = trajectory.messages()
    places = [i for i, turn in enumerate(turns) if turn.get("role") == "assistant"]
    if not places:
        return "no assistant message to judge"
    answer = text_of(turns[places[-1]].get("content"))
    if not answer.strip():
        return "the answer is empty"
    is_cut = getattr(trajectory.messages_and_choices[places[-1]], "finish_reason", "stop") == "length"
    return replace(_situation(turns[: places[-1]], group), is_cut=is_cut), answer


def _situation(before: list[Message], group: TrajectoryGroup) -> Situation:
    users = [text_of(m.get("content")) for m in before if m.get("role") == "user"]
    asked = users[-1] if users else ""
    question, passage = group.metadata.get("question"), group.metadata.get("context")
    if not (question and passage and question in asked and passage in asked):
        question, passage = split_user_message(asked)
    frame = asked.replace(passage or "", " ").replace(question or "", " ")
    return Situation(before, system_prompt_of(before), question, passage, frame)


def split_user_message(text: str) -> tuple[str | None, str | None]:
    """Question and passage of a message in which a label such as `[Retrieved context]:` parts them."""
    label = _LABEL.search(text)
    if label is None:
        return None, None
    before, after = text[: label.start()].strip(), text[label.end() :].strip()
    if before:
        return before, after
    second = _QUESTION_LABEL.search(after)
    if second is None:
        return None, None
    return after[second.end() :].strip(), after[: second.start()].strip()


def _baseline(situation: Situation) -> list[Message]:
    asked = situation.question or NEUTRAL_USER
    return [{"role": "system", "content": NEUTRAL_SYSTEM}, {"role": "user", "content": asked}]


def _asking(answer: str, question: str) -> Continuation:
    asked = ASK_USER.replace("{answer}", answer or "...")
    return Continuation(
        [{"role": "system", "content": ASK_SYSTEM}, {"role": "user", "content": asked}], question
    )


def _plain(text: str) -> str:
    """Letters and digits in lower case: spaces, case and punctuation do not hide a copy."""
    return "".join(c for c in text.lower() if c.isalnum())


def _run_lengths(tokens: Sequence[str], source: str) -> list[int]:
    """For each token, how many tokens long the copied run that ends with it is so far (0: not copied).

    Compared as text, so that another cut into tokens does not hide a copy.
    """
    text = _plain(source)
    lengths, start = [], 0
    pieces = [_plain(t) for t in tokens]
    for i, piece in enumerate(pieces):
        while start <= i and "".join(pieces[start : i + 1]) not in text:
            start += 1
        lengths.append(sum(1 for p in pieces[start : i + 1] if p) if piece else 0)
    return lengths


def _inside_runs(tokens: Sequence[str], sources: Sequence[str], least: int) -> list[bool]:
    """True for tokens inside a run of at least `least` tokens copied from one of the sources."""
    inside = [False] * len(tokens)
    for source in sources:
        lengths = _run_lengths(tokens, source) if source else [0] * len(tokens)
        for end, length in enumerate(lengths):
            if length >= least:
                start, seen = end, 0
                while start >= 0 and seen < length:
                    seen += bool(_plain(tokens[start]))
                    inside[start] = True
                    start -= 1
    return inside


def _repeats(tokens: Sequence[str]) -> list[bool]:
    """True where a token follows itself, or the same token as once before in this answer: nothing new is said."""
    pieces = [_plain(t) for t in tokens]
    seen: set[tuple[str, str]] = set()
    repeated = []
    for pair in zip(["", *pieces], pieces, strict=False):
        repeated.append(pair in seen or (pair[0] == pair[1] != ""))
        seen.add(pair)
    return repeated


def _without_runs(answer: str, source: str, least: int) -> str:
    """The answer without runs of `least` or more words copied from the source."""
    words = answer.split()
    inside = _inside_runs([f" {w}" for w in words], [source], least)
    return " ".join(w for w, cut in zip(words, inside, strict=True) if not cut)


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
