"""The kinds of mathematical answers, as plain data."""

from __future__ import annotations

from dataclasses import dataclass


class Unreadable(ValueError):
    """The text cannot be read for sure, so nothing may be concluded from it."""


class Malformed(Unreadable):
    """The text is no mathematical answer at all: prose, or brackets that do not match."""


@dataclass(frozen=True)
class Leaf:
    """One expression in LaTeX, with its unit ("" where there is none)."""

    latex: str
    unit: str = ""
    percent: bool = False


@dataclass(frozen=True)
class Words:
    """Text: a choice letter, a name, "no solution"."""

    text: str


@dataclass(frozen=True)
class Based:
    """Digits in a base other than ten."""

    digits: str
    base: int


@dataclass(frozen=True)
class Ratio:
    """3:4, or the time 12:05 when `is_time`."""

    parts: tuple[str, ...]
    is_time: bool


@dataclass(frozen=True)
class Many:
    """Several answers, in no order: a list or a set, in which repetition does not count."""

    items: tuple[Form, ...]
    is_set: bool
    by_commas: bool = False
    """A list that may also be a pair or a tuple whose brackets were left out."""


@dataclass(frozen=True)
class Sequence:
    """A tuple, a vector or an interval: brackets and order count."""

    opening: str
    closing: str
    items: tuple[Form, ...]


@dataclass(frozen=True)
class Equation:
    """Parts joined by `=` (or `\\in`); `name` is the first part where that is only what the rest is called."""

    name: str
    parts: tuple[Form, ...]
    latex: str


@dataclass(frozen=True)
class Relation:
    """Inequalities, joined by "and" or "or"."""

    latex: tuple[str, ...]
    joined_by: str


@dataclass(frozen=True)
class SetExpression:
    """Unions, intersections, differences, and number sets."""

    latex: str


Form = Leaf | Words | Based | Ratio | Many | Sequence | Equation | Relation | SetExpression
