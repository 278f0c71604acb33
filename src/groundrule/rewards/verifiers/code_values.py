"""Plain values as JSON and back: all that passes between a candidate, its tests and the grader.

Numbers, text, None and booleans are themselves. Everything else is a list that begins with the kind, so that a tuple
stays a tuple and a dict may have keys of any kind. An instance of a subclass travels as its base: what it overrides
(`__eq__`) stays behind. Anything else has to be referred to, or cannot travel.

The text of this file is also sent into sandboxes: standard library only.
"""

from __future__ import annotations

TYPE_CHECKING = False  # As in sandbox_linux.py.
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAX_DEPTH = 64
LARGEST = 1 << 53
LONGEST_FRACTION = 20_000
"""Characters. To reduce a longer one takes time that a candidate must not take from the grader."""

SEQUENCES = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}
WRITTEN: dict[tuple[str, str], Callable[[Any], str]] = {
    ("decimal", "Decimal"): str,
    ("datetime", "datetime"): lambda value: value.isoformat(),
    ("datetime", "date"): lambda value: value.isoformat(),
}
"""Immutable values of the standard library that travel as text."""


class CannotTravel(Exception):
    """A value that is not plain; the message names its type."""


def encode(value: Any, refer: Callable[[Any], Any] | None = None, depth: int = 0) -> Any:
    """JSON for a value. `refer` gives it for what is not plain; without it `CannotTravel` is raised."""
    kind = type(value)
    if value is None or kind in (bool, float, str):
        return value
    if depth > MAX_DEPTH:
        raise CannotTravel(f"a value nested deeper than {MAX_DEPTH}")
    if isinstance(value, int):
        return int(value) if -LARGEST < value < LARGEST else ["int", hex(int(value))]
    if isinstance(value, float):
        return float(value)
    if isinstance(value, str):
        return "".join(value)
    if isinstance(value, dict):
        return [
            "dict",
            [[encode(k, refer, depth + 1), encode(v, refer, depth + 1)] for k, v in value.items()],
        ]
    for name, base in SEQUENCES.items():
        if isinstance(value, base):
            return [name, [encode(item, refer, depth + 1) for item in value]]
    if isinstance(value, (bytes, bytearray)):
        return ["bytes" if isinstance(value, bytes) else "bytearray", bytes(value).hex()]
    if kind is complex:
        return ["complex", value.real, value.imag]
    if (kind.__module__, kind.__name__) == ("collections", "deque"):
        return ["deque", [encode(item, refer, depth + 1) for item in value]]
    if (kind.__module__, kind.__name__) == ("fractions", "Fraction"):
        return ["Fraction", encode(value.numerator), encode(value.denominator)]
    if write := WRITTEN.get((kind.__module__, kind.__name__)):
        return [kind.__name__, write(value)]
    if refer is None:
        raise CannotTravel(f"an object of type {kind.__name__}")
    return refer(value)


def decode(data: Any, referred: Callable[[list[Any]], Any] | None = None) -> Any:
    """The value of what `encode` gave; `referred` answers for kinds that are not plain."""
    if not isinstance(data, list):
        return data
    kind, *rest = data
    if kind in SEQUENCES:
        return SEQUENCES[kind](decode(item, referred) for item in rest[0])
    if kind == "dict":
        return {decode(k, referred): decode(v, referred) for k, v in rest[0]}
    if kind == "int":
        return int(rest[0], 16)
    if kind in ("bytes", "bytearray"):
        return (bytes if kind == "bytes" else bytearray).fromhex(rest[0])
    if kind == "complex":
        return complex(*rest)
    if kind == "deque":
        return __import__("collections").deque(decode(item, referred) for item in rest[0])
    if kind == "Fraction" and len(str(rest)) < LONGEST_FRACTION:
        return __import__("fractions").Fraction(decode(rest[0]), decode(rest[1]))
    for module, name in WRITTEN:
        if kind == name:
            written = getattr(__import__(module), name)
            return (written.fromisoformat if module == "datetime" else written)(rest[0])
    if referred is None:
        raise ValueError(f"{kind!r} is not a plain value")
    return referred(data)
