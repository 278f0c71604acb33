"""Queries: the same rows on every database, and nothing is ever written."""

from __future__ import annotations

import hashlib
import sqlite3
from pathlib import Path

import pytest

from groundrule.errors import ConfigError
from groundrule.rewards.verifiers import verify_sql
from groundrule.rewards.verifiers.sql import orders_result

ROWS = [
    [(1, "ink", 1.5), (2, "pen", None), (3, "pen", 2.5)],
    [(1, "cup", 0.5), (5, "pen", 9.0), (7, "cup", 0.1), (8, "ink", 3.0)],
]
REFERENCE = "SELECT id, name FROM items WHERE price > 1"


@pytest.fixture
def databases(tmp_path) -> list[Path]:
    paths = []
    for number, rows in enumerate(ROWS):
        path = tmp_path / f"items {number}?.db"
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE items (id INTEGER, name TEXT, price REAL)")
        connection.executemany("INSERT INTO items VALUES (?, ?, ?)", rows)
        connection.commit()
        connection.close()
        paths.append(path)
    return paths


def value(query: str, databases: list[Path], reference: str = REFERENCE, **options) -> float | None:
    return verify_sql(query, reference, databases, timeout_s=30, **options).value


@pytest.mark.parametrize(
    "query",
    [
        REFERENCE,
        "SELECT i.id AS number, i.name AS label FROM items i WHERE price > 1",
        "SELECT id, name FROM items WHERE NOT price <= 1 ORDER BY id DESC;",
        "Here it is:\n```sql\nSELECT id, name FROM items WHERE price > 1;\n```\nDone.",
        "<think>DELETE?</think>SELECT id, name FROM items WHERE price > 1 -- all",
    ],
)
def test_a_query_with_the_same_rows_is_right(query, databases):
    assert value(query, databases) == 1.0


@pytest.mark.parametrize(
    "query",
    [
        "SELECT name, id FROM items WHERE price > 1",
        "SELECT id FROM items WHERE price > 1",
        "SELECT id, name FROM items",
        "SELECT DISTINCT 1, name FROM items WHERE price > 1",
        "VALUES (1, 'ink'), (3, 'pen')",
        "SELECT id, name FROM items WHERE price > 1 UNION ALL SELECT id, name FROM items WHERE price > 1",
        "SELECT id, cost FROM items",
        "",
        "-- nothing",
        "I cannot do that.",
    ],
)
def test_another_result_is_wrong(query, databases):
    assert value(query, databases) == 0.0


WRITES = [
    "DELETE FROM items",
    "INSERT INTO items VALUES (9, 'x', 1) RETURNING id, name",
    "UPDATE items SET price = 2 RETURNING id, name",
    "DROP TABLE items",
    "CREATE TEMP TABLE t AS SELECT 1",
    "SELECT 1, 2; DELETE FROM items",
    "ATTACH 'other.db' AS other",
    "PRAGMA journal_mode = WAL",
    "PRAGMA user_version = 7",
    "VACUUM INTO 'copy.db'",
    "BEGIN",
    "SELECT load_extension('x'), 1",
]


@pytest.mark.parametrize("query", WRITES)
def test_everything_but_reading_is_wrong(query, databases):
    assert value(query, databases) == 0.0


def test_the_databases_keep_every_byte(databases):
    before = [hashlib.sha256(path.read_bytes()).hexdigest() for path in databases]
    for query in [REFERENCE, *WRITES]:
        value(query, databases)
    assert [hashlib.sha256(path.read_bytes()).hexdigest() for path in databases] == before


def test_no_file_is_left_beside_the_databases(databases):
    for query in [REFERENCE, *WRITES]:
        value(query, databases)
    assert sorted(databases[0].parent.iterdir()) == sorted(databases)


ORDERED = "SELECT id FROM items ORDER BY id DESC"


def test_order_counts_where_the_reference_orders(databases):
    assert (value("SELECT id FROM items", databases, ORDERED), value(ORDERED, databases, ORDERED)) == (
        0.0,
        1.0,
    )


def test_order_can_be_left_out_of_account(databases):
    assert value("SELECT id FROM items", databases, ORDERED, ordered=False) == 1.0


@pytest.mark.parametrize(
    ("query", "ordered"),
    [
        ("SELECT a FROM t ORDER BY b", True),
        ("SELECT a FROM t order\n by b LIMIT 1", True),
        ("SELECT a FROM t ORDER /* so */ BY b", True),
        ("SELECT 1 UNION SELECT 2 ORDER BY 1", True),
        ("WITH c AS (SELECT 1) SELECT * FROM c ORDER BY 1", True),
        ("SELECT * FROM (SELECT a FROM t ORDER BY b)", False),
        ("WITH c AS (SELECT 1 ORDER BY 1) SELECT * FROM c", False),
        ("SELECT row_number() OVER (ORDER BY b) FROM t", False),
        ("SELECT 'ORDER BY b' FROM t -- ORDER BY b", False),
        ('SELECT a AS "order", b AS "by" FROM t', False),
        ("SELECT a FROM t", False),
    ],
)
def test_only_the_outermost_order_by_orders_the_result(query, ordered):
    assert orders_result(query) is ordered


def test_the_order_of_columns_can_be_left_out_of_account(databases):
    assert value("SELECT name, id FROM items WHERE price > 1", databases, any_column_order=True) == 1.0


def test_columns_with_the_right_values_in_the_wrong_rows_are_wrong_in_any_order(databases):
    query = "SELECT name, 8 - id FROM items"
    reference = "SELECT 9 - id, name FROM items"
    assert value(query, databases, reference, any_column_order=True) == 0.0


@pytest.mark.parametrize(
    ("query", "reference", "expected"),
    [
        ("SELECT sum(price) + 1e-12 FROM items", "SELECT sum(price) FROM items", 1.0),
        ("SELECT sum(price) + 1e-3 FROM items", "SELECT sum(price) FROM items", 0.0),
        ("SELECT count(*) * 1.0 FROM items", "SELECT count(*) FROM items", 1.0),
        ("SELECT count(*) || '' FROM items", "SELECT count(*) FROM items", 0.0),
        ("SELECT coalesce(price, 0) FROM items", "SELECT price FROM items", 0.0),
        ("SELECT name FROM items GROUP BY name", "SELECT name FROM items", 0.0),
        ("SELECT price FROM items ORDER BY price", "SELECT price FROM items", 1.0),
    ],
)
def test_numbers_nulls_and_duplicates_are_compared_as_they_should(query, reference, expected, databases):
    assert value(query, databases, reference) == expected


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_databases_are_the_callers_mistake(count, databases):
    with pytest.raises(ConfigError, match="give at least two with different contents"):
        value(REFERENCE, databases[:count])


def test_one_database_given_twice_is_one(databases):
    with pytest.raises(ConfigError, match="verify_sql got 1 database"):
        value(REFERENCE, [databases[0], str(databases[0])])


def test_a_missing_database_is_named(databases):
    with pytest.raises(ConfigError, match=r"no database file .*nowhere\.db"):
        value(REFERENCE, [databases[0], databases[0].parent / "nowhere.db"])


@pytest.mark.parametrize(
    ("reference", "reason"),
    [
        ("SELECT cost FROM items", "bad_reference: the reference query: no such column: cost"),
        ("SELECT 7", "bad_reference: its result is the same on all databases, so a constant would pass"),
        ("SELECT a.id FROM items a, items b, items c", "bad_reference: its result has more than 20 rows"),
    ],
)
def test_a_reference_that_decides_nothing_gives_no_score(reference, reason, databases):
    assert verify_sql("SELECT 7", reference, databases, most_rows=20, timeout_s=30).reason == reason


def test_a_query_without_end_gives_no_score(databases):
    endless = "WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r) SELECT count(*), 1 FROM r"
    assert (
        verify_sql(endless, REFERENCE, databases, timeout_s=0.3).reason == "timeout: no result within 0.3 s"
    )


def test_a_query_that_makes_a_huge_value_is_refused(databases):
    assert value("SELECT hex(zeroblob(1000000000)), 1", databases) == 0.0


@pytest.fixture
def duck_files(tmp_path) -> list[Path]:
    duckdb = pytest.importorskip("duckdb")
    paths = []
    for number, rows in enumerate(ROWS):
        path = tmp_path / f"items{number}.duckdb"
        connection = duckdb.connect(str(path))
        connection.execute("CREATE TABLE items (id INTEGER, name TEXT, price DOUBLE)")
        connection.executemany("INSERT INTO items VALUES (?, ?, ?)", rows)
        connection.close()
        paths.append(path)
    return paths


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("FROM items SELECT id, name WHERE price > 1", 1.0),
        ("SELECT id, name FROM items", 0.0),
        ("DELETE FROM items", 0.0),
        ("SET threads = 4", 0.0),
        ("ATTACH ':memory:' AS other", 0.0),
        ("SELECT 1, 2; SELECT 3, 4", 0.0),
        ("SELECT * FROM read_csv('/etc/hostname')", 0.0),
    ],
)
def test_duckdb_files_are_read_and_nothing_else(query, expected, duck_files):
    assert value(query, duck_files, engine="duckdb") == expected
