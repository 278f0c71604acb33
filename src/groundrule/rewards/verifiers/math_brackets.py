"""Brackets in mathematical text: where they close, and what stands between separators outside of them."""

from __future__ import annotations

import re

_BRACE = re.compile(r"\\[\\{}]|[{}]")
_OPENING, _CLOSING = "([{", ")]}"


def closing_brace(text: str, start: int) -> int | None:
    """Where the brace that opens at `start` closes; None where it does not. Escaped braces are signs."""
    depth = 0
    for brace in _BRACE.finditer(text, start):
        if brace[0] in "{}":
            depth += 1 if brace[0] == "{" else -1
            if depth == 0:
                return brace.start()
    return None


def split(text: str, separator: str | re.Pattern[str]) -> list[str]:
    """The pieces between separators that stand outside all brackets."""
    pattern = re.compile(re.escape(separator)) if isinstance(separator, str) else separator
    depths = _depths(text)
    pieces, start = [], 0
    for match in pattern.finditer(text):
        if depths[match.start()] == 0 and match.start() >= start:
            pieces.append(text[start : match.start()])
            start = match.end()
    return [piece.strip() for piece in [*pieces, text[start:]]]


def _depths(text: str) -> list[int]:
    depth, depths = 0, []
    for sign in text:
        depth -= sign in _CLOSING
        depths.append(depth)
        depth += sign in _OPENING
    return depths


def balanced(text: str) -> bool:
    """Every bracket closes. Round and square ones may close each other, as in a half-open interval."""
    expected: list[str] = []
    for sign in text:
        if sign in _OPENING:
            expected.append("}" if sign == "{" else ")]")
        elif sign in _CLOSING and (not expected or sign not in expected.pop()):
            return False
    return not expected


def closes_at_end(text: str) -> bool:
    """The bracket that opens the text is closed by its last sign and not before."""
    return all(depth > 0 for depth in _depths(text)[2:-1] or [1]) if len(text) > 2 else True


def without_braces(text: str) -> str:
    """`{x}` is `x`: plain braces only group."""
    while text.startswith("{") and text.endswith("}") and closes_at_end(text):
        text = text[1:-1].strip()
    return text
