"""One answer as the layers see it: its own text apart from what it was given, and without words to the grader."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import system_prompt_of, text_of
from groundrule.data.trajectory import Trajectory
from groundrule.rewards.attempt import Attempt, Turn, attempts_of
from groundrule.rewards.checklist.reader import own_text
from groundrule.rewards.checklist.verdicts import is_quoted
from groundrule.rewards.detector import addresses_grader
from groundrule.rewards.gate import question_len, says_nothing

_SENTENCE = re.compile(r"[^\n]+?(?:[.!?]+(?=\s|$)|[。！？]+|(?=\n|$))|\n+")
"""A point inside a number ends no sentence."""
_WORDS = re.compile(r"\w+")


@dataclass(frozen=True)
class Case:
    """One distinct answer of a group."""

    member: Trajectory
    attempt: Attempt
    """Sentences that speak to a grader are taken out of what the agent wrote."""
    given: int
    """How many opening turns the agent was given."""
    metadata: Mapping[str, Any]
    flagged: int = 0
    """Sentences that were taken out."""

    @property
    def own(self) -> tuple[Turn, ...]:
        """What came after the opening."""
        return self.attempt.turns[self.given :]

    @cached_property
    def answer(self) -> str:
        """The agent's last words; "" where there are none."""
        last = next((t for t in reversed(self.own) if t["role"] == "assistant"), None)
        return "" if last is None else text_of(last["content"]).strip()

    @cached_property
    def evidence(self) -> str:
        """The text in which a quote counts: what the agent wrote, its calls included.

        Results of tools are not: what a page says is not what the agent says.
        """
        said = tuple(turn for turn in self.own if turn["role"] == "assistant")
        further = tuple(tuple(t for t in h if t["role"] == "assistant") for h in self.attempt.histories)
        return own_text(replace(self.attempt, turns=said, histories=further))

    @cached_property
    def question(self) -> str:
        """What the user said last before the answer."""
        asked = [t for t in self.attempt.turns[: self.given] if t["role"] == "user"]
        return text_of(asked[-1]["content"]) if asked else str(self.metadata.get("question") or "")

    @cached_property
    def system(self) -> str:
        """The agent's system prompt."""
        return system_prompt_of(self.attempt.turns[: self.given])

    @property
    def acts(self) -> bool:
        """True for an agent that called tools."""
        return any(turn["calls"] or turn["role"] == "tool" for turn in self.own)

    @property
    def is_cut(self) -> bool:
        """True where an own turn reached its length limit or was filtered."""
        return any(turn.get("cut") for turn in self.own)


def cases_of(group: TrajectoryGroup) -> list[Case]:
    """One for each member, in order; equal members have equal `attempt.key`s."""
    attempts = attempts_of(group)
    given = question_len(attempts)
    cases = []
    for member, attempt in zip(group, attempts, strict=True):
        turns, flagged = list(attempt.turns), 0
        for i, turn in enumerate(turns[given:], start=given):
            if turn["role"] == "assistant" and isinstance(turn["content"], str):
                kept, count = without_pleas(turn["content"])
                turns[i] = {**turn, "content": kept}
                flagged += count
        cleaned = replace(attempt, turns=tuple(turns)) if flagged else attempt
        cases.append(Case(member, cleaned, given, group.metadata, flagged))
    return cases


def without_pleas(text: str) -> tuple[str, int]:
    """The text without the sentences that speak to a grader, and how many those were."""
    found = [finding.span for finding in addresses_grader(text)]
    if not found:
        return text, 0
    kept = [s for start, end, s in _sentences(text) if not any(a < end and start < b for a, b in found)]
    return "".join(kept).strip(), sum(1 for _ in _sentences(text)) - len(kept)


def _sentences(text: str) -> Iterator[tuple[int, int, str]]:
    return ((m.start(), m.end(), m[0]) for m in _SENTENCE.finditer(text))


def stands_in(quote: str, text: str) -> bool:
    """Whether a quote is evidence: it says something, and its words stand in the text.

    Case, spaces and punctuation do not count. A single letter or digit must be a word of the text by itself.
    """
    words = _WORDS.findall(quote.casefold())
    if len("".join(words)) == 1:
        return words[0] in _WORDS.findall(text.casefold())
    return says_nothing(quote) is None and is_quoted(quote, text)
