"""What a text must contain before a pattern can match it, read off the pattern itself.

Fifty patterns over every answer cost more than the rest of the judging. Looking for a few plain words first costs
little, and a text without them cannot match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import takewhile
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

_REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)

_MOST_LETTERS = 3
_EVERYDAY = frozenset("answer attempt output reply response solution the".split())
"""What most answers have."""

Stems = frozenset[str]
"""Pieces of text, in lower case, of which a match has at least one."""

_NOTHING: Stems = frozenset({""})


def stems_of(pattern: re.Pattern[str]) -> tuple[Stems, ...]:
    """A match has one piece out of each of these sets; first those that other text is least likely to have."""
    return tuple(_stems(_parser.parse(pattern.pattern, pattern.flags)))


def _stems(sequence: Iterable[Any]) -> list[Stems]:
    required: list[Stems] = []
    literal = _NOTHING
    for operation, value in sequence:
        if letters := _letters(operation, value):
            literal = frozenset(stem + letter for stem in literal for letter in letters)
            continue
        required.append(literal)
        literal = _NOTHING
        if operation is ops.BRANCH:
            required += _of_any([_stems(branch) for branch in value[1]])
        elif operation is ops.SUBPATTERN:
            required += _stems(value[-1])
        elif operation in _REPEATS and value[0] > 0:
            required += _stems(value[2])
    required.append(literal)
    return list(takewhile(_rarity, sorted(required, key=_rarity, reverse=True)))


def _letters(operation: Any, value: Any) -> list[str]:
    """What stands for one character that is known, or is one of a few."""
    items = [(operation, value)] if operation is ops.LITERAL else value if operation is ops.IN else []
    if len(items) > _MOST_LETTERS or any(kind is not ops.LITERAL for kind, _ in items):
        return []
    return [chr(code).lower() for _, code in items]


def _of_any(branches: list[list[Stems]]) -> list[Stems]:
    """One of the branches matches: it has one piece of its first set, one of its second, and so on."""
    return [frozenset().union(*sets) for sets in zip(*branches, strict=False)]


def _rarity(stems: Stems) -> int:
    return min(1 if stem in _EVERYDAY else len(stem) for stem in stems)
