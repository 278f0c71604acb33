"""What is wrong in a file of tables with ids, and its line: TOML readers know keys, people know lines."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from groundrule.data.answers import shown
from groundrule.errors import DataError

Place = tuple[str | int, ...]
"""Where a value stands: ("principles", 2, "weight")."""

_LIST_OF_TABLES = re.compile(r"\s*\[\[\s*(?P<name>[\w-]+)\s*\]\]")
_TABLE = re.compile(r"\s*\[\s*(?P<name>[\w-]+)\s*\]\s*(?:#.*)?$")
_KEY = re.compile(r"""\s*["']?(?P<name>[\w-]+)["']?\s*=""")
_LONG_QUOTE = re.compile(r'"""|' + "'''")
_AT_LINE = re.compile(r" \(at line (?P<line>\d+), column \d+\)$")


class Misplaced(ValueError):
    """A fault that is seen in the whole, with the place that it is about."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(message)
        self.place = place


def syntax_fault(error: tomllib.TOMLDecodeError, path: str) -> DataError:
    """Of a file that is no TOML."""
    text = str(error)
    found = _AT_LINE.search(text)
    return DataError(
        f"is not TOML: {_AT_LINE.sub('', text)}", path=path, line=int(found["line"]) if found else None
    )


def located(error: ValidationError, text: str, path: str, tables: Mapping[str, type[BaseModel]]) -> DataError:
    """The first fault of a file, by the kinds of its tables; "" is the file itself."""
    fault = error.errors(include_url=False)[0]
    own = fault.get("ctx", {}).get("error")
    place: Place = own.place if isinstance(own, Misplaced) else fault["loc"]
    table = str(place[0]) if len(place) > 1 else ""
    known = tables[table].model_fields if table in tables else {}
    names = [part for part in place if isinstance(part, str)]
    return DataError(
        _said(fault, names[-1] if names else "", table, list(known)),
        path=path,
        line=line_of(text, place),
        column=names[-1] if names else None,
    )


def each_id_once(table: str, kind: str, ids: Iterable[str]) -> None:
    """Raise `Misplaced` for an id that is taken; `kind` is what a row of the table is called."""
    places: dict[str, int] = {}
    for place, name in enumerate(ids):
        if name in places:
            raise Misplaced(
                (table, place, "id"),
                f"{name!r} is already the id of {kind} {places[name] + 1}; give each its own",
            )
        places[name] = place


def line_of(text: str, place: Place) -> int | None:
    """The line of the value, or of the nearest table around it that has one."""
    lines = _lines(text)
    return next((lines[place[:n]] for n in range(len(place), 0, -1) if place[:n] in lines), None)


def _lines(text: str) -> dict[Place, int]:
    """Where tables and keys stand; lines inside long strings are text."""
    found: dict[Place, int] = {}
    counts: Counter[str] = Counter()
    table: Place = ()
    quote: str | None = None
    for number, line in enumerate(text.splitlines(), start=1):
        if quote is None:
            if header := _LIST_OF_TABLES.match(line):
                table = (header["name"], counts[header["name"]])
                counts[header["name"]] += 1
                found[table] = number
            elif header := _TABLE.match(line):
                table = (header["name"],)
                found[table] = number
            elif key := _KEY.match(line):
                found.setdefault((*table, key["name"]), number)
        for mark in _LONG_QUOTE.findall(line):
            quote = mark if quote is None else None if mark == quote else quote
    return found


def _said(fault: Any, name: str, table: str, known: list[str]) -> str:
    """What is wrong, and what to write instead."""
    kind = fault["type"]
    if isinstance(fault.get("ctx", {}).get("error"), Misplaced):
        return str(fault["ctx"]["error"])
    if not table and kind in ("missing", "too_short"):
        return f"holds no {name}; add a [[{name}]] table for each"
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        return "unknown key; " + (f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}")
    if kind == "missing":
        return f"is missing; every table of [[{table}]] needs it"
    if kind == "string_too_short":
        return "is empty; write its text"
    return f"is {shown(fault['input'])}: {fault['msg']}"
