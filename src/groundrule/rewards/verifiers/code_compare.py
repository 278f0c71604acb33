"""When an answer is the expected one: values against values, printed text against text.

The candidate's values are compared as they arrived, never built first: what is looked at is no larger than what is
expected.
"""

from __future__ import annotations

import math
import numbers
import re
from collections import deque
from collections.abc import Mapping
from typing import Any

from groundrule.rewards.verifiers.code_values import decode

TOLERANCE = 1e-6
"""Relative or absolute, whichever is kinder, wherever a decimal fraction is expected."""

SHOWN = 200
_SINGLE = {"int", "complex", "Decimal", "Fraction", "date", "datetime"}
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


def same_value(expected: Any, data: Any, *, is_exact: bool = False) -> bool:
    """Is the encoded value `data` the expected one?

    Exact: as Python's `==` between plain values. Otherwise as JSON would have it: an expected float is met within
    `TOLERANCE`, NaN is NaN, True is not 1, and an expected list may come as a tuple (JSON has no tuples). Expected
    integers are met exactly; an expected tuple, set or bytes must come as such; what a set holds is met exactly.
    """
    if isinstance(expected, Mapping):
        return _same_dict(expected, data, is_exact)
    if isinstance(expected, list | tuple | deque):
        kind = next(base.__name__ for base in (list, tuple, deque) if isinstance(expected, base))
        items = _content(data, {kind, "tuple"} if kind == "list" and not is_exact else {kind}, len(expected))
        if items is None:
            return False
        return all(same_value(e, d, is_exact=is_exact) for e, d in zip(expected, items, strict=True))
    if isinstance(expected, set | frozenset):
        items = _content(data, {"set", "frozenset"}, len(expected))
        return items is not None and bool(_plain(["frozenset", items]) == expected)
    if isinstance(expected, bytes | bytearray):
        digits = _content(data, {"bytes", "bytearray"}, 2 * len(expected))
        return digits is not None and bool(_plain(data) == expected)
    if isinstance(data, list) and not (len(data) > 1 and isinstance(data[0], str) and data[0] in _SINGLE):
        return False
    got = _plain(data)
    if isinstance(expected, numbers.Number) and isinstance(got, numbers.Number):
        return _same_number(expected, got, is_exact)
    return type(expected) is type(got) and bool(expected == got)


def _same_dict(expected: Mapping[Any, Any], data: Any, is_exact: bool) -> bool:
    pairs = _content(data, {"dict"}, len(expected))
    if pairs is None or not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        return False
    keys = [_plain(key) for key, _ in pairs]
    if _plain(["frozenset", [key for key, _ in pairs]]) != set(expected):
        return False
    return all(same_value(expected[k], v, is_exact=is_exact) for k, (_, v) in zip(keys, pairs, strict=True))


def _same_number(expected: Any, got: Any, is_exact: bool) -> bool:
    if not is_exact and isinstance(expected, bool) != isinstance(got, bool):
        return False
    if not is_exact and isinstance(expected, float) and isinstance(got, int | float):
        return _close(expected, got)
    try:
        return bool(expected == got)
    except ArithmeticError:  # A signalling NaN.
        return False


def _close(expected: float, got: float) -> bool:
    try:
        got = float(got)
    except OverflowError:
        return False
    if math.isnan(expected) or math.isnan(got):
        return math.isnan(expected) and math.isnan(got)
    return math.isclose(expected, got, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _content(data: Any, kinds: set[str], length: int) -> Any:
    """What a container holds, if it is of one of these kinds and of this length; else None."""
    fits = isinstance(data, list) and len(data) == 2 and isinstance(data[0], str) and data[0] in kinds
    return data[1] if fits and isinstance(data[1], list | str) and len(data[1]) == length else None


class _Nothing:
    """Equal to nothing: what a candidate sent that is no value."""


def _plain(data: Any) -> Any:
    try:
        return decode(data)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError):
        return _Nothing()


def same_output(expected: str, got: str) -> bool:
    """Are these the same words in the same order? Where a decimal fraction is expected, within `TOLERANCE`.

    Spaces and line ends do not count, how many and where; case, signs and leading zeros do.
    """
    wanted, words = expected.split(), got.split()
    return len(wanted) == len(words) and all(map(_same_word, wanted, words))


def _same_word(expected: str, got: str) -> bool:
    if expected == got:
        return True
    if not any(sign in expected for sign in ".eE"):
        return False
    return all(map(_NUMBER.fullmatch, (expected, got))) and _close(float(expected), float(got))


def shown(data: Any, room: int = SHOWN) -> str:
    """A value as a person would write it, shortened."""
    try:
        value = _plain(data) if len(str(data)) <= 10 * room else data
        return "a malformed value" if isinstance(value, _Nothing) else written(value, room)
    except RecursionError:
        return "a deeply nested value"


def written(value: Any, room: int = SHOWN) -> str:
    """A value as Python writes it, shortened."""
    try:
        return shorten(repr(value), room)
    except ValueError:  # An integer with more digits than Python writes.
        return "a value too large to be written"


def shorten(text: str, room: int = SHOWN) -> str:
    """The text, or its beginning and how much there is more."""
    return text if len(text) <= room else f"{text[:room]}... ({len(text)} characters)"
