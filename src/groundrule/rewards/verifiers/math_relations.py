"""Equations, inequalities and sets of numbers: do two statements say the same? Runs in a worker only."""

from __future__ import annotations

from typing import Any

import sympy  # type: ignore[import-untyped]

from groundrule.rewards.verifiers.math_kinds import (
    Form,
    Leaf,
    Many,
    Relation,
    Sequence,
    SetExpression,
    Unreadable,
)
from groundrule.rewards.verifiers.math_parse import parse
from groundrule.rewards.verifiers.math_values import at_points, proportional


def same_relation(gold: Form, answer: Form) -> bool:
    """Each is a multiple of the other; or, with one variable, both hold for the same numbers."""
    if not (_is_solution_set(gold) and _is_solution_set(answer)):
        return False
    left, right = _relation_or_set(gold), _relation_or_set(answer)
    relational = sympy.core.relational.Relational
    if not isinstance(left, sympy.Set) and not isinstance(right, sympy.Set):
        if left.free_symbols != right.free_symbols:
            return False
        if isinstance(left, relational) and isinstance(right, relational):
            verdict = _same_single_relation(left, right)
            if verdict or isinstance(left, sympy.Eq) or len(left.free_symbols) > 1:
                return verdict
    return _equal_sets(_solutions(left), _solutions(right))


def _is_solution_set(form: Form) -> bool:
    """An open interval of two numbers may be a point, so it does not stand for an inequality."""
    if isinstance(form, Sequence):
        return len(form.items) == 2 and ("[" in form.opening or "]" in form.closing or _infinite(form))
    return isinstance(form, Relation | SetExpression)


def _infinite(interval: Sequence) -> bool:
    return any(isinstance(end, Leaf) and r"\infty" in end.latex for end in interval.items)


def _relation_or_set(form: Form) -> Any:
    if not isinstance(form, Relation):
        return _as_set(form)
    parsed = [parse(text) for text in form.latex]
    if len(parsed) == 1:
        return parsed[0]
    return sympy.And(*parsed) if form.joined_by == "and" else sympy.Or(*parsed)


def _same_single_relation(left: Any, right: Any) -> bool:
    if isinstance(left, sympy.Eq | sympy.Ne):
        numerators = [sympy.together(_difference(side).doit()).as_numer_denom()[0] for side in (left, right)]
        return type(left) is type(right) and proportional(*at_points(*numerators))
    if isinstance(left, sympy.Lt | sympy.Gt) != isinstance(right, sympy.Lt | sympy.Gt):
        return False
    return proportional(*at_points(_difference(left), _difference(right)), positive=True)


def _difference(relation: Any) -> Any:
    """Positive where an inequality holds."""
    turned = isinstance(relation, sympy.Lt | sympy.Le)
    more, less = (relation.rhs, relation.lhs) if turned else (relation.lhs, relation.rhs)
    return sympy.Add(more, sympy.Mul(-1, less, evaluate=False), evaluate=False)


def _solutions(found: Any) -> Any:
    if isinstance(found, sympy.Set):
        return found
    if len(found.free_symbols) != 1:
        raise Unreadable("inequalities in several variables")
    [variable] = found.free_symbols
    try:
        return found.doit().subs(variable, sympy.Symbol(variable.name, real=True)).as_set()
    except Exception as error:  # sympy cannot solve it.
        raise Unreadable("an inequality that cannot be solved") from error


def same_set(gold: Form, answer: Form) -> bool:
    if not all(
        isinstance(form, SetExpression | Sequence) or (isinstance(form, Many) and form.is_set)
        for form in (gold, answer)
    ):
        return False
    return _equal_sets(_as_set(gold), _as_set(answer))


def _as_set(form: Form) -> Any:
    match form:
        case SetExpression(latex=latex):
            found = parse(latex)
            if isinstance(found, sympy.Set):
                return found.doit()
        case Sequence(opening=opening, closing=closing, items=(Leaf(latex=start), Leaf(latex=end))):
            ends = parse(start).doit(), parse(end).doit()
            return sympy.Interval(*ends, left_open=opening == "(", right_open=closing == ")")
        case Many(items=items) if all(isinstance(item, Leaf) for item in items):
            return sympy.FiniteSet(*(parse(item.latex).doit() for item in items if isinstance(item, Leaf)))
    raise Unreadable("a set that cannot be read")


def _equal_sets(left: Any, right: Any) -> bool:
    if left == right:
        return True
    try:
        empty = sympy.SymmetricDifference(left, right).doit().is_empty
    except Exception as error:  # sympy cannot compute it.
        raise Unreadable("sets that cannot be compared") from error
    if empty is None:
        raise Unreadable("sets that cannot be compared")
    return bool(empty)
