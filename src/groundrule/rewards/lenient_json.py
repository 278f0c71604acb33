"""JSON as small models write it, read without ever guessing a value.

Strict JSON is tried first. Only then are these slips mended: single quotes, trailing commas, missing
commas between objects, backslashes that JSON does not know, unquoted keys, Python's True / False / None.
A bare word that is not a number (`0.8x`, `8/10`, `85%`) is kept as text, so that nothing turns into a
number that was not one.
"""

from __future__ import annotations

import json
import re
from typing import Any

from groundrule.rewards.replies import end_of_string

_SPACE_OR_WORD = re.compile(r"""\s+|[^\s\[\]{},:"']+|'""")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_WORDS = {"true": "true", "false": "false", "null": "null", "True": "true", "False": "false", "None": "null"}
_NON_FINITE = {"NaN", "nan", "Infinity", "-Infinity", "inf", "-inf"}
_BAD_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')


class Repeated(ValueError):
    """An object holds one key twice, so it says two things."""


def loads(text: str) -> Any:
    """The value of `text`. Raises `Repeated` for a key given twice and `ValueError` for what is not JSON."""
    try:
        return _strict(text)
    except Repeated:
        raise
    except (ValueError, RecursionError):
        pass
    try:
        return _strict(_mended(text))
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _strict(text: str) -> Any:
    return json.loads(text, strict=False, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = sorted({key for key in keys if keys.count(key) > 1})
        raise Repeated(f"the key {twice[0]!r} is given {keys.count(twice[0])} times in one object")
    return result


def _mended(text: str) -> str:
    """The same tokens, spelt as JSON."""
    tokens = _tokens(text)
    result: list[str] = []
    for token, following in zip(tokens, [*tokens[1:], ""], strict=True):
        if token == "," and following in ("}", "]"):
            continue
        result.append(token)
        if token in ("}", "]") and following in ("{", "["):
            result.append(",")
    return " ".join(result)  # Never "": two numbers must not become one.


def _tokens(text: str) -> list[str]:
    tokens: list[str] = []
    at = 0
    while at < len(text):
        sign = text[at]
        if sign in "[]{},:":
            tokens.append(sign)
            at += 1
        elif sign == '"' or (sign == "'" and (not tokens or tokens[-1] in "{[,:")):
            end = end_of_string(text, at)
            if end is None:
                raise ValueError("a string is not closed")
            tokens.append(_string(text[at + 1 : end - 1], quote=sign))
            at = end
        else:
            word = _SPACE_OR_WORD.match(text, at)
            assert word is not None  # Every other character is a space, a bracket or a quote.
            if not word[0].isspace():
                tokens.append(_word(word[0]))
            at = word.end()
    return tokens


def _string(inside: str, *, quote: str) -> str:
    if quote == "'":
        inside = inside.replace("\\'", "'")
        inside = re.sub(r'(?<!\\)"', r"\"", inside)
    return '"' + _BAD_ESCAPE.sub(lambda match: match[0] if len(match[0]) > 1 else "\\\\", inside) + '"'


def _word(word: str) -> str:
    if _NUMBER.fullmatch(word):
        return word
    if word in _NON_FINITE:
        return json.dumps(word)
    return _WORDS.get(word) or json.dumps(word)
