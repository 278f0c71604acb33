"""Does a query give the result of the reference query, on several databases?"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

from groundrule.data.group import TrajectoryGroup
from groundrule.data.score import Score
from groundrule.errors import ConfigError
from groundrule.rewards.replies import answer_text
from groundrule.rewards.verifiers.scorer import VerifierScorer, group_reference
from groundrule.rewards.verifiers.workers import WorkerError, WorkerTimeout, shared

Engine = Literal["sqlite", "duckdb"]

LONGEST = 20_000
"""Characters of a query."""

_FENCE = re.compile(r"```(?:sql|sqlite|duckdb)?[ \t]*\n(.*?)```", re.DOTALL | re.IGNORECASE)
_TOKEN = re.compile(
    r"--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]|[A-Za-z_]\w*|[()]|\S",
    re.DOTALL,
)
_COMPARE = "groundrule.rewards.verifiers.sql_compare:compare"
_START_MORE_S = 1.0


def verify_sql(
    query: str,
    reference_query: str,
    databases: Sequence[str | Path],
    *,
    ordered: bool | None = None,
    any_column_order: bool = False,
    tolerance: float = 1e-9,
    timeout_s: float = 5.0,
    most_rows: int = 10_000,
    engine: Engine = "sqlite",
) -> Score:
    """1.0 where the query gives the rows of the reference query on every database, else 0.0.

    Rows are compared as a multiset, in order only where the reference query orders its result (`ordered` overrules
    that). Names of columns do not count, their order does unless `any_column_order`. Numbers may differ by
    `tolerance`, relatively or absolutely; NULL equals NULL only; text never equals a number. A fenced block in the
    reply is the query, the last one where there are several.

    At least two databases with different contents are needed, because on a single one a query that writes the
    expected result down, without reading a table, passes. They are opened read-only, and everything but reading is
    refused: writing, several statements, ATTACH and PRAGMA are wrong (0.0).

    No score, with one of these words first in the reason: `bad_reference` (it fails, gives more than `most_rows`
    rows, or the same on all databases), `timeout` (a query takes more than `timeout_s` seconds on one database),
    `broken`. Raises `ConfigError` for databases that are missing or too few.
    """
    paths = _checked(databases, engine)
    text = _query(query)
    if not text:
        return Score(value=0.0, explanation="there is no query")
    if len(text) > LONGEST:
        return Score(value=0.0, explanation=f"{len(text)} characters are more than a query may have")
    in_order = orders_result(reference_query) if ordered is None else ordered
    options = {
        "engine": engine, "ordered": in_order, "any_column_order": any_column_order, "tolerance": tolerance,
        "most_rows": most_rows, "limit_s": timeout_s,
    }  # fmt: skip
    whole_s = 2 * len(paths) * timeout_s + _START_MORE_S
    try:
        found = shared.call(_COMPARE, text, reference_query, paths, options, timeout_s=whole_s)
    except WorkerTimeout as error:
        return Score.none(f"timeout: {error}")
    except WorkerError as error:
        return Score.none(f"broken: {error}")
    if "reason" in found:
        return Score.none(found["reason"])
    return Score(
        value=float(found["equal"]), explanation=found["why"], parts={"databases": float(len(paths))}
    )


def _checked(databases: Sequence[str | Path], engine: str) -> list[str]:
    if engine not in ("sqlite", "duckdb"):
        raise ConfigError(f"engine is {engine!r}; verify_sql knows 'sqlite' and 'duckdb'")
    if engine == "duckdb" and importlib.util.find_spec("duckdb") is None:
        raise ConfigError("verify_sql with engine='duckdb' needs duckdb; install it: pip install duckdb")
    if isinstance(databases, str | Path):
        databases = [databases]
    paths = [str(Path(path).resolve()) for path in databases]
    if len(set(paths)) < 2:
        raise ConfigError(
            f"verify_sql got {len(set(paths))} database; on one database a query passes that only writes the expected "
            "result down, so give at least two with different contents"
        )
    missing = [path for path in paths if not Path(path).is_file()]
    if missing:
        raise ConfigError(f"verify_sql: there is no database file {missing[0]}")
    return paths


def _query(reply: str) -> str:
    text = answer_text(reply)
    blocks = _FENCE.findall(text)
    return (blocks[-1] if blocks else text).strip()


def orders_result(query: str) -> bool:
    """Whether the outermost query has an ORDER BY: one outside all parentheses, strings and comments.

    Not a parser: a query that stands in parentheses as a whole does not count as ordered, and one that orders by
    keys with ties is taken as if the ties had an order. `verify_sql(..., ordered=...)` overrules it.
    """
    depth = 0
    previous = ""
    for match in _TOKEN.finditer(query):
        token = match[0]
        if token.startswith(("--", "/*")):
            continue
        depth += (token == "(") - (token == ")")
        if depth == 0 and previous == "ORDER" and token.upper() == "BY":
            return True
        previous = token.upper()
    return False


def sql_scorer(
    databases: Sequence[str | Path],
    *,
    reference: Callable[[TrajectoryGroup], Any] = group_reference,
    **options: Any,
) -> VerifierScorer:
    """`verify_sql` for groups; the reference is the reference query. `options` are those of `verify_sql`."""
    return VerifierScorer(partial(verify_sql, databases=databases, **options), reference=reference)
