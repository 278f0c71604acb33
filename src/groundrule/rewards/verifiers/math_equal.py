"""Are two answers equal? Runs in a worker only: sympy may need minutes, and is killed after seconds.

Numbers are compared exactly, or numerically with as many digits as it takes to see a difference; expressions with
variables at points, which settles equality without `simplify`. math-verify's own comparison has the last word only
where neither applies. It rounds to six decimals and drops differences below 1e-15, so it never sees numbers here.
"""

from __future__ import annotations

import re
from typing import Any

import sympy  # type: ignore[import-untyped]

from groundrule.rewards.verifiers.math_form import readings
from groundrule.rewards.verifiers.math_kinds import (
    Based,
    Equation,
    Form,
    Leaf,
    Malformed,
    Many,
    Ratio,
    Relation,
    Sequence,
    SetExpression,
    Unreadable,
    Words,
)
from groundrule.rewards.verifiers.math_parse import parse
from groundrule.rewards.verifiers.math_relations import same_relation, same_set
from groundrule.rewards.verifiers.math_text import plain
from groundrule.rewards.verifiers.math_values import equal_values, nearly, proportional

Verdict = dict[str, Any]

_SPACE = re.compile(r"(?<![A-Za-z0-9]) | (?![A-Za-z0-9])")
"""Spaces that part nothing; the one in `2 3` does."""
_UNDONE = re.compile(r"\\(?:sum|prod|int)(?![A-Za-z])")
"""Repeating the question is no answer to it."""
_CHOICES = frozenset("ABCDE")
_LONG = 8
_LONG_DECIMAL = re.compile(r"-? ?(\d*)\.(\d+)")


def compare(gold: str, answer: str) -> Verdict:
    """`equal` True, False or None with `why`; `bad_gold` when it is the reference that cannot be read."""
    gold_text, answer_text = plain(gold), plain(answer)
    if gold_text and _SPACE.sub("", gold_text) == _SPACE.sub("", answer_text):
        return {"equal": True, "why": "the same text"}
    try:
        golds = list(readings(gold_text))
        for form in golds:
            _probe(form)
    except Unreadable as error:
        return {"equal": None, "bad_gold": True, "why": str(error)}
    try:
        answers = list(readings(answer_text))
        for form in answers:
            _probe(form)
        if _UNDONE.search(answer_text) and not _UNDONE.search(gold_text):
            return {"equal": False, "why": "it is not worked out"}
        equal = any(same(g, a) for g in golds for a in answers)
    except Malformed as error:
        return {"equal": False, "why": str(error)}
    except Unreadable as error:
        return {"equal": None, "why": str(error)}
    return {"equal": equal, "why": ""}


def _probe(form: Form) -> None:
    """Parse everything once, so that what cannot be read is noticed even where the comparison ends before it."""
    match form:
        case Leaf(latex=latex) | SetExpression(latex=latex):
            parse(latex)
        case Many(items=items) | Sequence(items=items):
            for item in items:
                _probe(item)
        case Equation(parts=parts):
            for part in parts:
                _probe(part)
        case Relation(latex=parts):
            for text in parts:
                parse(text)
        case Ratio(parts=parts):
            for text in parts:
                parse(text)
        case Words() | Based():
            pass


def same(gold: Form, answer: Form) -> bool:
    """Whether the answer says what the reference says."""
    if isinstance(gold, Equation) or isinstance(answer, Equation):
        return _same_equation(gold, answer)
    if isinstance(gold, Relation) or isinstance(answer, Relation):
        return same_relation(gold, answer)
    if isinstance(gold, SetExpression) or isinstance(answer, SetExpression):
        return same_set(gold, answer)
    match gold, answer:
        case Leaf(), Leaf():
            return _same_leaf(gold, answer)
        case Words(), Words():
            return gold == answer
        case (Words(text=word), Leaf(latex=letter)) | (Leaf(latex=letter), Words(text=word)):
            return letter.isalpha() and letter.casefold() == word
        case Based(), Based():
            return gold == answer
        case Ratio(), _:
            return _same_ratio(gold, answer)
        case _, Ratio():
            return _same_ratio(answer, gold)
        case Many(), Many():
            return _same_many(gold, answer)
        case Sequence(), Sequence():
            return _same_sequence(gold, answer)
        case (Sequence(opening="(", closing=")", items=ordered), Many(by_commas=True, items=listed)) | (
            Many(by_commas=True, items=listed),
            Sequence(opening="(", closing=")", items=ordered),
        ):
            return _pairwise(ordered, listed)
        case (Many(is_set=True, items=(only,)), Leaf()):
            return same(only, answer)
    return False


def _same_leaf(gold: Leaf, answer: Leaf) -> bool:
    """Units must agree where both are given; a percent sign counts as a hundredth, or as a unit that was left out."""
    units = [side.unit or "percent" * side.percent for side in (gold, answer)]
    if all(units) and units[0] != units[1]:
        return False
    if gold.latex in _CHOICES and len(answer.latex) == 1:
        return gold.latex.casefold() == answer.latex.casefold()
    left, right = parse(gold.latex), parse(answer.latex)
    if _rounded(gold, answer, left, right):
        return True
    if gold.percent == answer.percent:
        return equal_values(left, right)
    hundredth = sympy.Rational(1, 100)
    if gold.percent and equal_values(sympy.Mul(left, hundredth, evaluate=False), right):
        return True
    if answer.percent and equal_values(left, sympy.Mul(right, hundredth, evaluate=False)):
        return True
    is_number = isinstance(left, sympy.Expr) and left.is_number and left.is_real
    return bool(is_number and (left > 1 or left < -1)) and equal_values(left, right)


def _rounded(gold: Leaf, answer: Leaf, left: Any, right: Any) -> bool:
    """A decimal with many digits stands for the exact value that it approximates up to its last digit."""
    decimals = [_LONG_DECIMAL.fullmatch(side.latex) for side in (gold, answer)]
    written = [match for match in decimals if match]
    if len(written) != 1 or gold.percent or answer.percent or left.free_symbols or right.free_symbols:
        return False
    whole, digits = written[0].groups()
    if len((whole + digits).lstrip("0")) < _LONG:
        return False
    return nearly(left, right, sympy.Rational(1, 10 ** len(digits)))


def _same_ratio(ratio: Ratio, other: Form) -> bool:
    if isinstance(other, Leaf):
        top, *bottom = (parse(part) for part in ratio.parts)
        return (
            not ratio.is_time
            and len(bottom) == 1
            and not other.unit
            and equal_values(
                sympy.Mul(top, sympy.Pow(bottom[0], -1, evaluate=False), evaluate=False), parse(other.latex)
            )
        )
    if not isinstance(other, Ratio) or len(ratio.parts) != len(other.parts):
        return False
    mine, theirs = [parse(p) for p in ratio.parts], [parse(p) for p in other.parts]
    if ratio.is_time or other.is_time:
        return all(equal_values(a, b) for a, b in zip(mine, theirs, strict=True))
    return proportional(mine, theirs)


def _same_many(gold: Many, answer: Many) -> bool:
    """The same elements. Repetition counts between two lists, not in sets."""
    mine, theirs = list(gold.items), list(answer.items)
    if gold.is_set or answer.is_set:
        return all(_among(item, theirs) for item in mine) and all(_among(item, mine) for item in theirs)
    if len(mine) != len(theirs):
        return False
    if _names_variables(mine) != _names_variables(theirs):
        return _pairwise(gold.items, answer.items)
    for item in mine:
        found = next((other for other in theirs if same(item, other)), None)
        if found is None:
            return False
        theirs.remove(found)
    return True


def _names_variables(items: list[Form]) -> bool:
    """`x=1, y=2`, not `x_1=1, x_2=2`: beside such a list, one without names has an order."""
    return len({item.name.partition("_")[0] for item in items if isinstance(item, Equation)}) > 1


def _among(item: Form, others: list[Form]) -> bool:
    return any(same(item, other) for other in others)


def _same_sequence(gold: Sequence, answer: Sequence) -> bool:
    """Two elements may be an interval, where brackets count; from three on they are only brackets."""
    brackets = (gold.opening, gold.closing) == (answer.opening, answer.closing)
    return (brackets or len(gold.items) > 2) and _pairwise(gold.items, answer.items)


def _pairwise(mine: tuple[Form, ...], theirs: tuple[Form, ...]) -> bool:
    return len(mine) == len(theirs) and all(same(a, b) for a, b in zip(mine, theirs, strict=True))


def _same_equation(gold: Form, answer: Form) -> bool:
    if isinstance(gold, Equation) and isinstance(answer, Equation):
        if gold.name == answer.name and gold.name:
            return all(same(mine, theirs) for mine in gold.parts for theirs in answer.parts)
        return same_relation(_as_relation(gold), _as_relation(answer))
    equation, value = (gold, answer) if isinstance(gold, Equation) else (answer, gold)
    assert isinstance(equation, Equation)
    if not equation.name and any(_has_variable(part) for part in equation.parts):
        return False
    pairs = [(part, value) if equation is gold else (value, part) for part in equation.parts]
    return bool(pairs) and all(same(mine, theirs) for mine, theirs in pairs)


def _has_variable(part: Form) -> bool:
    return not isinstance(part, Leaf) or bool(parse(part.latex).free_symbols)


def _as_relation(equation: Equation) -> Relation:
    if r"\in" in equation.latex.replace(r"\infty", "") or not all(
        isinstance(p, Leaf) for p in equation.parts
    ):
        raise Unreadable("two statements of different form")
    return Relation((equation.latex,), "and")
