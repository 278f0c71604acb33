"""What kind of thing a mathematical answer is: a number with a unit, a set, a pair, an equation, words.

Only the outer structure is read here, by brackets and separators; what is inside stays text (`Leaf`) for the
parser. Where a comma can be read in two ways (`1,234`), both readings are given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from groundrule.rewards.verifiers.math_brackets import balanced, closes_at_end, split, without_braces
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
from groundrule.rewards.verifiers.math_units import CHANGING_WORDS, split_unit

_OR = re.compile(
    r"\s*,?\s*(?:\\text\{\s*(?:or|and)\s*\}|(?<![A-Za-z\\])(?:or|and)(?![A-Za-z])|\\lor(?![A-Za-z]))\s*"
)
_AND = re.compile(r"\s*,?\s*(?:\\text\{\s*and\s*\}|(?<![A-Za-z\\])and(?![A-Za-z])|\\land(?![A-Za-z]))\s*")
_THOUSANDS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?![\d,])")
_POINTS = re.compile(r"\d{1,3}(?:\.\d{3})+,\d+|\d{1,3}(?:\.\d{3}){2,}")
_DECIMAL_COMMA = re.compile(r"-?(?:0,\d+|\d+,(?:\d{1,2}|\d{4,})|\d{4,},\d+)(?!\d|,)")
_SPACED = re.compile(r"(?<![\d.])\d{1,3}(?: \d{3})+(?![\d])")
_BASED = re.compile(r"\(?([0-9A-Fa-f]+)\)?_(?:\{(\d+)\}|(\d))")
_COMPARES = re.compile(r"<|>|\\le(?![A-Za-z])|\\ge(?![A-Za-z])|\\ne(?![A-Za-z])")
_EQUALS = re.compile(r"(?<![<>!\\])=|\\in(?![A-Za-z])")
_SET_SIGN = re.compile(r"\\(?:cup|cap|setminus)(?![A-Za-z])|\\mathbb\{[A-Z]\}")
_SIGNED = re.compile(r"\\(pm|mp)(?![A-Za-z])")
_SUB = r"(?:_(?:\{[^{}]*\}|[A-Za-z0-9]))?"
_NAME = re.compile(
    rf"(?:(?:[A-Za-z]|\\[A-Za-z]+ ?|\\text\{{[^{{}}]*\}}){_SUB}'*(?:\^\{{?-1\}}?)?(?:\([A-Za-z, ]*\))?"
    r"|\\overline\{[A-Z]+\}|\|?[A-Z]{2,3}\|?|\\angle ?[A-Z]+|P\([^()]*\))"
)
_NO_NAME = re.compile(r"\\(?:pi|infty|emptyset|ldots) ?|[ei]")
_CHOICE = re.compile(r"\(?([A-Za-z])[).:]?")


def readings(text: str) -> Iterator[Form]:
    """Every way to read a whole answer that is already in one spelling. Raises `Unreadable`."""
    if not text:
        raise Malformed("it is empty")
    if not balanced(text):
        raise Malformed("its brackets do not match")
    seen: set[Form] = set()
    for spelling in _comma_readings(text):
        form = read(spelling)
        if form not in seen:
            seen.add(form)
            yield form


def _comma_readings(text: str) -> Iterator[str]:
    if _POINTS.fullmatch(text.lstrip("-+ ")):
        yield text.replace(".", "").replace(",", ".")
    if _SPACED.search(text):
        text = _SPACED.sub(lambda match: match[0].replace(" ", ""), text)
    has_brackets = re.search(r"[(\[]|\\\{", text)  # There a comma parts elements.
    grouped = text if has_brackets else _THOUSANDS.sub(lambda match: match[0].replace(",", ""), text)
    yield grouped
    if grouped != text:
        yield text
    elif (comma := _DECIMAL_COMMA.match(text)) and "," not in text[comma.end() :]:
        yield text.replace(",", ".", 1)


def read(text: str) -> Form:
    """The structure of one answer, or of one element of it."""
    text = without_braces(text.strip(" ,;"))
    if not text:
        raise Malformed("a part of it is empty")
    if "\\begin" in text:
        return Leaf(text)
    if text.startswith(r"\{") and re.search(r"\\mid(?![A-Za-z])|\||:", text):
        raise Unreadable("a set given by a condition")
    return (
        _words(text) or _based(text) or _several(text) or _related(text) or _bracketed(text) or _single(text)
    )


def _words(text: str) -> Form | None:
    inner = re.fullmatch(r"\\text\{([^{}]*)\}|((?:[^\W\d_]|')+(?:[ -](?:[^\W\d_]|')+)*)", text)
    if inner is None or _OR.search(text):
        choice = re.fullmatch(r"\(([A-Z])\)", text)
        return Words(choice[1].casefold()) if choice else None
    lengths = [len(word) for word in re.split("[ -]", inner[2] or "")]
    if inner[2] and inner[2].isascii() and max(lengths) < 4 and (len(lengths) == 1 or min(lengths) < 2):
        return None  # Variables, such as abc or p-q.
    said = (inner[1] or inner[2]).strip()
    choice = _CHOICE.fullmatch(said)
    return Words(
        choice[1].casefold() if choice else " ".join(re.split(r"[\s.,;:!?'\"()]+", said.casefold())).strip()
    )


def _based(text: str) -> Form | None:
    match = _BASED.fullmatch(text)
    if match is None or not (match[1][0].isdigit() or match[2]):
        return None
    digits, base = match[1].upper().lstrip("0") or "0", int(match[2] or match[3])
    if base == 10 and digits.isdigit():
        return Leaf(digits)
    if not 2 <= base <= 16 or any(int(digit, 16) >= base for digit in digits):
        raise Unreadable(f"{text} is no number in base {base}")
    return Based(digits, base)


def _several(text: str) -> Form | None:
    """Elements separated by commas, semicolons, "or", "and", or given twice by a plus-minus sign."""
    if _COMPARES.search(text):
        return _compared(text)
    items = [item for part in split(text, _OR) for item in _items(part)]
    if len(items) == 1 and (text.startswith(r"\{") or not _SIGNED.search(text)):
        return None
    name, rest = _shared_name(items)
    forms = tuple(read(signed) for item in rest for signed in _signs(item))
    if len(forms) == 1:
        return None
    by_commas = not _SIGNED.search(text) and len(split(text, _OR)) == 1
    many = Many(forms, is_set=False, by_commas=by_commas)
    return Equation(name, (many,), text) if name else many


def _shared_name(items: list[str]) -> tuple[str, list[str]]:
    """`x = 1, 2` and `x = 1 or x = 2` are values of one x."""
    sides = [_EQUALS.split(item) for item in items]
    named = [side for side in sides if len(side) > 1]
    if not named or len(sides[0]) != 2 or any(len(side) > 2 for side in sides):
        return "", items
    names = {side[0].strip() for side in named}
    name = sides[0][0].strip()
    if len(names) > 1 or not _NAME.fullmatch(name) or any(_opens(side[-1]) for side in sides):
        return "", items
    return name, [side[-1].strip() for side in sides]


def _opens(text: str) -> bool:
    return not balanced(text)


def _signs(item: str) -> list[str]:
    r"""`\pm 2` as `+2` and `-2`. Several signs are independent, unless there is a `\mp`: then they go together."""
    signs = _SIGNED.findall(item)
    if not signs:
        return [item]
    if _EQUALS.search(item) or len(signs) > 3:
        raise Unreadable("it has a plus-minus sign where it cannot be resolved")
    if "mp" in signs:
        choices = [tuple(s == "pm" for s in signs), tuple(s == "mp" for s in signs)]
    else:
        choices = [tuple(bool(n >> k & 1) for k in range(len(signs))) for n in range(2 ** len(signs))]
    return [_with_signs(item, choice) for choice in choices]


def _with_signs(item: str, plus: tuple[bool, ...]) -> str:
    signs = iter(plus)
    signed = _SIGNED.sub(lambda _: "+" if next(signs) else "-", item)
    return re.sub(r"(^|[(\[{,=])\s*\+", r"\1", signed)


def _compared(text: str) -> Form:
    joined_by = "and" if len(parts := split(text, _AND)) > 1 else "or"
    if len(parts) == 1:
        parts = split(text, _OR)
    if len(parts) == 1:
        parts, joined_by = _items(text), "and"
    if not all(_COMPARES.search(part) for part in parts):
        raise Unreadable("it mixes inequalities with other things")
    return Relation(tuple(parts), joined_by)


def _related(text: str) -> Form | None:
    sides = split(text, _EQUALS)
    if len(sides) == 1:
        near = split(text, re.compile(r"\\approx(?![A-Za-z])"))
        if len(near) == 1:
            return None
        return read(near[1] if _NAME.fullmatch(near[0]) else near[0])
    first = sides[0].strip()
    is_name = _NAME.fullmatch(first) is not None and not _NO_NAME.fullmatch(first)
    if r"\in" in text and not is_name:
        raise Unreadable("it states a membership that is no value")
    parts = tuple(read(side) for side in (sides[1:] if is_name else sides))
    return Equation(first.replace(" ", "") if is_name else "", parts, text)


def _bracketed(text: str) -> Form | None:
    if _SET_SIGN.search(text):
        return SetExpression(text)
    if text in (r"\emptyset", r"\{\}", r"\{ \}"):
        return Many((), is_set=True)
    if text.startswith(r"\{") and text.endswith(r"\}") and closes_at_end(text):
        return _set(text[2:-2])
    if text[0] in "([" and text[-1] in ")]" and closes_at_end(text):
        items = _items(text[1:-1])
        if len(items) > 1:
            return Sequence(text[0], text[-1], tuple(read(item) for item in items))
        if (text[0], text[-1]) == ("(", ")"):
            return read(text[1:-1])
        raise Unreadable("square brackets around one value")
    return None


def _set(inside: str) -> Form:
    items = _items(inside)
    return Many(tuple(read(signed) for item in items for signed in _signs(item)), is_set=True)


def _single(text: str) -> Form:
    if ":" in text:
        parts = tuple(part.strip() for part in text.split(":"))
        if any(re.search(r"[A-Za-z]{2}", part) for part in parts):
            raise Malformed("it is prose")
        is_time = re.fullmatch(r"\d{1,2}(?::[0-5]\d){1,2}", text.replace(" ", "")) is not None
        return Ratio(parts, is_time)
    latex, unit = split_unit(text)
    if changing := set(unit.split()) & CHANGING_WORDS:
        raise Unreadable(f"{min(changing)!r} changes what the number says")
    if unit == "percent":
        return Leaf(latex.strip(), percent=True)
    percent = re.fullmatch(r"(.+?) ?\\?%", latex)
    return Leaf((percent[1] if percent else latex).strip(), unit, percent is not None)


def _items(text: str) -> list[str]:
    return [item for part in split(text, ";") for item in split(part, ",")]
