"""What a text must contain before a pattern can match it, read off the pattern itself.

Fifty patterns over every answer cost more than the rest of the judging. Looking for a few plain words first costs
little, and a text without them cannot match.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

_REPEATS = (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT)


def stems_of(pattern: re.Pattern[str]) -> frozenset[str]:
    """Pieces of text, in lower case, of which every match has at least one; empty where there are none such."""
    return _stems(_parser.parse(pattern.pattern, pattern.flags))


def _stems(sequence: Iterable[Any]) -> frozenset[str]:
    """Of all pieces that the sequence must have, the ones that other text is least likely to have too."""
    required: list[frozenset[str]] = []
    literal = ""
    for operation, value in sequence:
        if operation is ops.LITERAL:
            literal += chr(value).lower()
            continue
        required.append(frozenset({literal}))
        literal = ""
        if operation is ops.BRANCH:
            required.append(_of_any([_stems(branch) for branch in value[1]]))
        elif operation is ops.SUBPATTERN:
            required.append(_stems(value[-1]))
        elif operation in _REPEATS and value[0] > 0:
            required.append(_stems(value[2]))
    required.append(frozenset({literal}))
    return max(required, key=_rarity) if any(_rarity(stems) for stems in required) else frozenset()


def _of_any(branches: list[frozenset[str]]) -> frozenset[str]:
    """One of the branches matches, so one of all their pieces is there; nothing is known if one has none."""
    return frozenset().union(*branches) if all(branches) else frozenset()


def _rarity(stems: frozenset[str]) -> int:
    return min((len(stem) for stem in stems), default=0)
