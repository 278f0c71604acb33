"""How a judge chooses between (A) and (B): by the probabilities of the letters, or by a letter that it writes."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from groundrule.data.protocols import ChatReply
from groundrule.errors import JudgeReplyError
from groundrule.rewards.parse import reply_text

FIRST_TOKENS = 3
"""The letter may come after a bracket or a word; later tokens belong to whatever else the judge says."""

_AROUND = " \t\r\n()[]{}*_\"'`:.,<>\u2581\u0120"
_WRITTEN = re.compile(
    r"\W*(?:(?i:(?:my|the)?\s*(?:better|best|final)?\s*(?:answer|option|choice|response|one))\s*(?i:is)?\W*)?"
    r"(?P<letter>[AB])(?!\W*(?i:or|and|vs)\b)(?:\W*$|[)\].,:;*\n]|\s+(?i:is|because|as|since)\b)"
)


@dataclass(frozen=True)
class Chosen:
    """What one reply says."""

    p: float | None
    """The probability of (A) against (B); None where the reply has none."""
    is_a: bool | None
    """What it wrote; None where that cannot be read."""
    mass: float = 0.0
    """How much of all probability the two letters have together: far below 1, the judge would say something else."""


def read_choice(reply: ChatReply) -> Chosen:
    """The choice in a reply; raises `JudgeReplyError` for one without any."""
    found = letter_probabilities(reply)
    try:
        written: bool | None = written_letter(reply) == "A"
    except JudgeReplyError:
        if found is None:
            raise
        written = None
    return Chosen(found[0], written, found[1]) if found else Chosen(None, written)


def letter_probabilities(reply: ChatReply) -> tuple[float, float] | None:
    """p(A) / (p(A) + p(B)), and p(A) + p(B), at that one of the first tokens where the letters are most probable.

    A letter that is not among the listed texts is taken to be as probable as it can be at most: as the last one listed,
    or as what the listed ones leave over. None where neither is listed.
    """
    read = [_at(listed) for listed in reply.top_logprobs[:FIRST_TOKENS]]
    known = [pair for pair in read if pair is not None]
    if not known:
        return None
    a, b = max(known, key=sum)
    return a / (a + b), a + b


def _at(listed: Sequence[tuple[str, float]]) -> tuple[float, float] | None:
    """Of one token."""
    sums = {"A": 0.0, "B": 0.0}
    for text, logprob in listed:
        letter = text.strip(_AROUND)
        if letter in sums:
            sums[letter] += min(1.0, math.exp(logprob))
    if not any(sums.values()):
        return None
    probabilities = [min(1.0, math.exp(logprob)) for _, logprob in listed]
    most = min(min(probabilities), max(0.0, 1.0 - sum(probabilities)))
    return sums["A"] or most, sums["B"] or most


def written_letter(reply: ChatReply) -> str:
    """The letter that a reply begins with; raises `JudgeReplyError` for one that begins with something else."""
    text = reply_text(reply, may_be_cut=True)
    found = _WRITTEN.match(text)
    if found is None:
        raise JudgeReplyError("ambiguous", f"the reply begins with neither A nor B: {text[:60]!r}")
    return found["letter"]
