"""The worker's part of `sql`: run both queries on every database, read-only, and compare their rows."""

from __future__ import annotations

import math
import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from itertools import islice, permutations
from typing import Any, Protocol
from urllib.parse import quote

Row = tuple[Any, ...]

_ALLOWED = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_FORBIDDEN_FUNCTIONS = {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit"}
_MOST_BYTES = 10_000_000
"""Length of a text or a blob inside a query."""
_MOST_PERMUTATIONS = 5040
_MOST_LOOSE = 2000
"""So many rows are matched one by one where they are equal only within the tolerance."""


class QueryError(Exception):
    """The query cannot be run here; the message says why."""


class TooSlow(Exception):
    """The query is over its time limit."""


class _Database(Protocol):
    def rows(self, query: str, most: int) -> list[Row]: ...


def compare(query: str, reference: str, paths: list[str], options: dict[str, Any]) -> dict[str, Any]:
    """`equal` and `why`, or the `reason` for which there is no verdict."""
    open_database: Callable[[str, float], _Database] = _DuckDB if options["engine"] == "duckdb" else _Sqlite
    most, limit_s = options["most_rows"], options["limit_s"]
    try:
        expected = [open_database(path, limit_s).rows(reference, most + 1) for path in paths]
    except (QueryError, TooSlow) as error:
        return {"reason": f"bad_reference: the reference query: {error}"}
    if any(len(rows) > most for rows in expected):
        return {"reason": f"bad_reference: its result has more than {most} rows"}
    if not any(
        difference(rows, expected[0], {**options, "any_column_order": False}) for rows in expected[1:]
    ):
        return {"reason": "bad_reference: its result is the same on all databases, so a constant would pass"}
    for number, (path, wanted) in enumerate(zip(paths, expected, strict=True), start=1):
        try:
            rows = open_database(path, limit_s).rows(query, len(wanted) + 1)
        except QueryError as error:
            return {"equal": False, "why": f"the query fails: {error}"}
        except TooSlow as error:
            return {"reason": f"timeout: {error}"}
        problem = difference(rows, wanted, options)
        if problem:
            return {"equal": False, "why": f"database {number}: {problem}"}
    return {"equal": True, "why": f"the same rows on {len(paths)} databases"}


class _Sqlite:
    """A database file that can be read and nothing else."""

    def __init__(self, path: str, limit_s: float) -> None:
        self._limit_s = limit_s
        try:
            self._connection = sqlite3.connect(f"file:{quote(path)}?mode=ro", uri=True, isolation_level=None)
            self._connection.execute("PRAGMA query_only = ON")
        except sqlite3.Error as error:
            raise QueryError(str(error)) from error
        self._connection.text_factory = lambda raw: raw.decode("utf-8", "surrogateescape")
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST_BYTES)
        self._connection.set_authorizer(_authorize)

    def rows(self, query: str, most: int) -> list[Row]:
        """At most so many rows of the result."""
        deadline = time.monotonic() + self._limit_s
        self._connection.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)
        try:
            cursor = self._connection.execute(query)
            if cursor.description is None:
                raise QueryError("it has no result")
            return list(islice(cursor, most))
        except (sqlite3.Error, sqlite3.Warning, ValueError) as error:
            if time.monotonic() > deadline:
                raise TooSlow(f"no result within {self._limit_s:g} s") from error
            raise QueryError(str(error)) from error
        finally:
            self._connection.close()


def _authorize(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    if action == sqlite3.SQLITE_FUNCTION and (second or "").lower() in _FORBIDDEN_FUNCTIONS:
        return sqlite3.SQLITE_DENY
    return sqlite3.SQLITE_OK if action in _ALLOWED else sqlite3.SQLITE_DENY


class _DuckDB:
    """The same for a DuckDB file, which can also reach other files and the network, unless told not to."""

    def __init__(self, path: str, limit_s: float) -> None:
        import duckdb  # type: ignore[import-not-found,unused-ignore]

        self._duckdb: Any = duckdb
        self._limit_s = limit_s
        settings = {"enable_external_access": "false", "lock_configuration": "true", "threads": "1"}
        try:
            self._connection = duckdb.connect(path, read_only=True, config=settings)
        except duckdb.Error as error:
            raise QueryError(str(error)) from error

    def rows(self, query: str, most: int) -> list[Row]:
        """At most so many rows of the result."""
        import threading

        timer = threading.Timer(self._limit_s, self._connection.interrupt)
        try:
            statements = self._connection.extract_statements(query)
            if len(statements) != 1 or statements[0].type != self._duckdb.StatementType.SELECT:
                raise QueryError("one SELECT statement is expected")
            timer.start()
            rows = self._connection.execute(statements[0]).fetchmany(most)
            return [tuple(float(v) if isinstance(v, Decimal) else v for v in row) for row in rows]
        except self._duckdb.InterruptException as error:
            raise TooSlow(f"no result within {self._limit_s:g} s") from error
        except self._duckdb.Error as error:
            raise QueryError(str(error)) from error
        finally:
            timer.cancel()
            self._connection.close()


def difference(rows: Sequence[Row], wanted: Sequence[Row], options: dict[str, Any]) -> str:
    """In words, what parts two results; "" where they are equal."""
    if len(rows) != len(wanted):
        more = "more" if len(rows) > len(wanted) else f"{len(rows)}"
        return f"{len(wanted)} rows are expected, the query gives {more}"
    widths = {len(row) for row in (*rows, *wanted)}
    if len(widths) > 1:
        return f"{len(wanted[0])} columns are expected, the query gives {len(rows[0])}"
    orders = _column_orders(rows, wanted, options) if options["any_column_order"] and rows else [None]
    for order in orders:
        arranged = rows if order is None else [tuple(row[k] for k in order) for row in rows]
        if _equal_rows(arranged, wanted, options):
            return ""
    return "the rows differ, or their order does" if options["ordered"] else "the rows differ"


def _column_orders(rows: Sequence[Row], wanted: Sequence[Row], options: dict[str, Any]) -> Any:
    """Orders of columns in which each column has the values of the expected one."""
    width = len(wanted[0])
    loose = {**options, "ordered": False}
    fits = [
        [
            k
            for k in range(width)
            if _equal_rows([(row[k],) for row in rows], [(row[j],) for row in wanted], loose)
        ]
        for j in range(width)
    ]
    orders = (order for order in permutations(range(width)) if all(k in fits[j] for j, k in enumerate(order)))
    return islice(orders, _MOST_PERMUTATIONS)


def _equal_rows(rows: Sequence[Row], wanted: Sequence[Row], options: dict[str, Any]) -> bool:
    tolerance = options["tolerance"]
    if options["ordered"]:
        return all(_equal_row(a, b, tolerance) for a, b in zip(rows, wanted, strict=True))
    left, right = Counter(map(_exact, rows)), Counter(map(_exact, wanted))
    mine, theirs = list((left - right).elements()), list((right - left).elements())
    if len(mine) > _MOST_LOOSE:
        return all(
            _equal_row(a, b, tolerance)
            for a, b in zip(sorted(mine, key=_key), sorted(theirs, key=_key), strict=True)
        )
    for row in mine:
        found = next((other for other in theirs if _equal_row(row, other, tolerance)), None)
        if found is None:
            return False
        theirs.remove(found)
    return True


def _exact(row: Row) -> Row:
    """Hashable, and so that text and numbers never fall together."""
    return tuple(
        value if isinstance(value, int | float | str | bytes | None) else str(value) for value in row
    )


def _key(row: Row) -> list[tuple[str, Any]]:
    return [
        ("number", float(value)) if isinstance(value, int | float) else (type(value).__name__, str(value))
        for value in row
    ]


def _equal_row(row: Row, other: Row, tolerance: float) -> bool:
    return all(_equal_value(a, b, tolerance) for a, b in zip(row, other, strict=True))


def _equal_value(a: Any, b: Any, tolerance: float) -> bool:
    if isinstance(a, int) and isinstance(b, int):
        return a == b
    if isinstance(a, int | float) and isinstance(b, int | float):
        return a == b or math.isclose(a, b, rel_tol=tolerance, abs_tol=tolerance)
    return type(a) is type(b) and bool(a == b)
