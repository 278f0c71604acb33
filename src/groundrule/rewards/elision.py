"""What stands in a trajectory where something was left out for length.

These are objects and not messages, so nothing that an agent, a tool or a file holds can pass for one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from groundrule.rewards.attempt import Turn


@dataclass(frozen=True)
class Elision:
    """How much was left out at one place."""

    tokens: int
    """Estimated."""
    messages: int = 0
    """Whole messages; 0 where a part of one is left out."""
    results: int = 0
    """How many of them are tool results."""

    def __add__(self, other: Elision) -> Elision:
        return Elision(
            self.tokens + other.tokens, self.messages + other.messages, self.results + other.results
        )

    def __str__(self) -> str:
        messages = f"{self.messages} message{'s' if self.messages > 1 else ''}, " if self.messages else ""
        results = f", {self.results} tool result{'s' if self.results > 1 else ''}" if self.results else ""
        return f"ELIDED: {messages}about {self.tokens} tokens{results}"


@dataclass(frozen=True)
class Shortened:
    """A text of which head and tail are shown."""

    head: str
    elided: Elision
    tail: str


def elided_turn(elision: Elision) -> Turn:
    """A turn that stands for those left out."""
    return {"role": "elided", "content": elision, "calls": []}


def is_elided(turn: Turn) -> bool:
    """True for such a turn, and for no message whatever it says."""
    return isinstance(turn["content"], Elision)


def first_text(content: Any) -> str | None:
    """The text with which a content begins; None where it is no plain text."""
    if isinstance(content, Shortened):
        return content.head
    return content if isinstance(content, str) else None
