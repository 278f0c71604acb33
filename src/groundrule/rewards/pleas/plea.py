"""One way of addressing a grader: a pattern, its kind and its reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from groundrule.rewards.pleas.stems import Stems, stems_of

PleaKind = Literal["grader", "verdict", "boundary", "instructions"]
"""Speaks to the grader; claims a score or imitates a verdict; imitates boundaries; overrides instructions."""


@dataclass(frozen=True)
class Plea:
    """One way of addressing a grader."""

    kind: PleaKind
    why: str
    pattern: re.Pattern[str]
    is_order: bool = False
    """Counts only where an order can begin: first in a sentence, or after "please" and the like."""

    @cached_property
    def stems(self) -> tuple[Stems, ...]:
        """Every match has a piece of text of each set, in small or capital letters."""
        return stems_of(self.pattern)

    def is_possible(self, small: str) -> bool:
        """Whether a text in small letters has them."""
        return all(any(stem in small for stem in stems) for stems in self.stems)

    def matches(self, text: str) -> Iterator[re.Match[str]]:
        """Where the text has it."""
        for match in self.pattern.finditer(text):
            if not self.is_order or _BEFORE_ORDERS.search(
                text, max(0, match.start() - _LOOKED_BACK), match.start()
            ):
                yield match


_LOOKED_BACK = 16
_BEFORE_ORDERS = re.compile(
    r"(?:\A|^|[.!?:;>\]*\n。！？；：]\s*|\b(?:please|and|then|must|now|just|simply|should|important|bitte|und"
    r"|veuillez|et"
    r"|por favor|y|e|пожалуйста|и),?\s+)\Z",
    re.IGNORECASE | re.MULTILINE,
)


def plea(kind: PleaKind, why: str, pattern: str, *, is_order: bool = False) -> Plea:
    """In the pattern a space stands for any white space, and ` ?` for white space or none."""
    spaced = pattern.replace(" ?", r"\s*").replace(" ", r"\s+")
    return Plea(kind, why, re.compile(spaced, re.IGNORECASE | re.DOTALL), is_order)
