"""Equality of parsed expressions, decided by numbers with as many digits as needed. Runs in a worker only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import sympy  # type: ignore[import-untyped]
from math_verify import verify  # type: ignore[import-untyped]

from groundrule.rewards.verifiers.math_kinds import Unreadable

_POINTS = [
    ["37/29", "53/31", "71/43", "19/17"],
    ["5/7", "101/97", "11/13", "23/3"],
    ["-41/23", "13/11", "-7/5", "3/19"],
    ["67/9", "-17/6", "1/8", "-29/12"],
    ["5", "3", "7", "2"],
    ["8", "2", "3", "4"],
    ["11", "6", "5", "9"],
    ["4", "1", "2", "6"],
]
"""Values for the variables: some positive, some negative, and whole ones for what is defined only there."""

_FIRST_WHOLE = 4
_ENOUGH = 4
"""At so many points both sides must be defined, and agree."""

_MOST_VARIABLES = 12
_DIGITS = 1000
"""Working digits up to which a difference between two numbers is looked for."""

_DIGITS_AT_POINTS = 100
"""The same for expressions with variables, where several points have their say."""


def equal_values(left: Any, right: Any) -> bool:
    """Exact equality of two numbers, expressions or matrices. Raises `Unreadable` where it cannot be decided."""
    matrix = sympy.MatrixBase | sympy.MatrixExpr
    if isinstance(left, matrix) or isinstance(right, matrix):
        return _equal_matrices(left.doit(), right.doit())
    if not (isinstance(left, sympy.Expr) and isinstance(right, sympy.Expr)):
        return bool(left == right)
    if any(side.has(sympy.oo, -sympy.oo) for side in (left, right)):
        return bool(left.doit() == right.doit())
    left, right = _without_functions(left, right)
    if left == right:
        return True
    verdicts = [_equal_at(left, right, point) for point in _points(left, right)]
    if False in verdicts:
        return False
    if verdicts.count(True) >= min(_ENOUGH, len(verdicts)):
        return True
    if left.free_symbols and verify(left, right, numeric_precision=50, timeout_seconds=None):
        return True
    raise Unreadable("its value cannot be computed")


def _equal_matrices(left: Any, right: Any) -> bool:
    if not (isinstance(left, sympy.MatrixBase) and isinstance(right, sympy.MatrixBase)):
        return False
    return left.shape == right.shape and all(
        equal_values(a, b) for a, b in zip(left.flat(), right.flat(), strict=True)
    )


def _without_functions(left: Any, right: Any) -> tuple[Any, Any]:
    """Unknown functions such as f(x) as variables of their own."""
    calls = left.atoms(sympy.core.function.AppliedUndef) | right.atoms(sympy.core.function.AppliedUndef)
    names = {call: sympy.Symbol(f"call{k}", real=True) for k, call in enumerate(sorted(calls, key=str))}
    return left.xreplace(names), right.xreplace(names)


def _points(*sides: Any) -> Iterator[dict[Any, Any]]:
    symbols = sorted(set().union(*(side.free_symbols for side in sides)), key=str)
    if len(symbols) > _MOST_VARIABLES:
        raise Unreadable(f"it has more than {_MOST_VARIABLES} variables")
    whole = any(side.has(sympy.Sum, sympy.Product) for side in sides)
    for row in (_POINTS[_FIRST_WHOLE:] if whole else _POINTS) if symbols else [[]]:
        # The fifth variable is the first one plus 3, and so on: no two variables are equal at every point.
        yield {symbol: sympy.Rational(row[k % 4]) + 3 * (k // 4) for k, symbol in enumerate(symbols)}


def _equal_at(left: Any, right: Any, point: dict[Any, Any]) -> bool | None:
    """None where a side has no value there, or where only one of them is real."""
    a, b = _value(left, point, 15), _value(right, point, 15)
    if a is None or b is None or (point and a.has(sympy.I) != b.has(sympy.I)):
        return None
    difference = _value(_minus(left, right), point, 15)
    return None if difference is None else _vanishes(difference)


def _value(expression: Any, point: dict[Any, Any], digits: int) -> Any:
    """A finite number; None where there is none."""
    try:
        value = expression.evalf(digits, subs=point, maxn=_DIGITS_AT_POINTS if point else _DIGITS)
    except Exception:  # Not defined there, in one of the many ways in which sympy says so.
        return None
    return value if value.is_number and not value.free_symbols and value.is_finite else None


def _vanishes(value: Any) -> bool:
    """Zero, or a Float in which no digit is significant after `_DIGITS` of them: what evalf makes of a zero."""
    return all(part == 0 or getattr(part, "_prec", 0) == 1 for part in value.as_real_imag())


def _minus(left: Any, right: Any) -> Any:
    return sympy.Add(left, sympy.Mul(-1, right, evaluate=False), evaluate=False)


def nearly(left: Any, right: Any, distance: Any) -> bool:
    """Whether two numbers are at most so far apart."""
    difference = _value(_minus(left, right), {}, 15)
    return difference is not None and bool(abs(difference) <= distance)


def proportional(left: Sequence[Any], right: Sequence[Any], *, positive: bool = False) -> bool:
    """Whether one factor (a positive one, if asked) takes every number of `left` to that of `right`."""
    zeros = [(_is_zero(a), _is_zero(b)) for a, b in zip(left, right, strict=True)]
    if any(a != b for a, b in zeros):
        return False
    pairs = [pair for pair, zero in zip(zip(left, right, strict=True), zeros, strict=True) if not any(zero)]
    if not pairs:
        raise Unreadable("it is always true")
    (a, b), *others = pairs
    if positive and bool(_value(a * b, {}, 15) < 0):
        return False
    return all(_is_zero(_minus(a * other_b, other_a * b)) for other_a, other_b in others)


def at_points(left: Any, right: Any) -> tuple[list[Any], list[Any]]:
    """Two expressions in the same variables as numbers, at the points where both have a value."""
    left, right = _without_functions(left, right)
    pairs = []
    for point in _points(left, right):
        pair = [side.subs(point) for side in (left, right)]
        if all(_value(side, {}, 15) is not None for side in pair):
            pairs.append(pair)
    if len(pairs) < _ENOUGH:
        raise Unreadable("its value cannot be computed")
    return [a for a, _ in pairs], [b for _, b in pairs]


def _is_zero(number: Any) -> bool:
    value = _value(number, {}, 15)
    if value is None:
        raise Unreadable("its value cannot be computed")
    return _vanishes(value)
