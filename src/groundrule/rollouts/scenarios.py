"""Reads scenarios from a built-in set, a JSONL file or a CSV file, and draws them step by step."""

from __future__ import annotations

import csv
import difflib
import io
import json
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from groundrule._util import jsonl
from groundrule._util.seed import derive
from groundrule.data.scenario import Scenario, Split
from groundrule.errors import ConfigError, DataError
from groundrule.rollouts.pydoc import pydoc_scenarios
from groundrule.rollouts.sums import sum_scenarios

COLUMNS = tuple(Scenario.model_fields)
SPLITS: tuple[Split, ...] = get_args(Split)

_REMEDIES = {
    "facts": 'write a list of facts, each a list of alternatives, such as [["30 days", "thirty days"]]',
    "metadata": 'write an object, such as {"source": "faq"}',
    "split": 'write "train" or "held-out"',
}


def load_scenarios(source: str | Path, *, split: Split | None = None) -> list[Scenario]:
    """Every scenario of a source, in file order; with `split`, only those of that side.

    `source` is the name of a built-in set ("support", "pydoc", "sums") or the path of a .jsonl or .csv file.
    Only the column `question` is required. A scenario without an id is named after its row, `row-1`.
    In CSV, `metadata` is a JSON object, and `facts` is JSON or `30 days|thirty days; by e-mail`.
    """
    if split is not None and split not in SPLITS:
        raise ConfigError(f'split is {split!r}; use "train", "held-out" or leave it out')
    builtin = _BUILTIN_SETS.get(source) if isinstance(source, str) else None
    scenarios = builtin() if builtin else _read_file(Path(source))
    return [scenario for scenario in scenarios if split is None or scenario.split == split]


def draw(scenarios: Sequence[Scenario], step: int, count: int, seed: int) -> list[Scenario]:
    """The `count` scenarios of training step `step`, counted from 1.

    The scenarios are dealt in shuffled order, each once an epoch, and every epoch is shuffled anew.
    Nothing is remembered between calls, so a resumed run draws what an uninterrupted one would. A step
    that reaches over the end of an epoch may hold a scenario twice.
    """
    if not scenarios:
        raise ConfigError("there are no scenarios to draw from; check the file and the split")
    for name, value in (("step", step), ("count", count)):
        if value < 1:
            raise ConfigError(f"{name} is {value}, but must be 1 or more")
    size = len(scenarios)
    first = (step - 1) * count
    epochs = range(first // size, (first + count - 1) // size + 1)
    dealt = [scenarios[i] for epoch in epochs for i in _epoch_order(size, epoch, seed)]
    start = first - epochs[0] * size
    return dealt[start : start + count]


def _epoch_order(size: int, epoch: int, seed: int) -> list[int]:
    order = list(range(size))
    random.Random(derive("scenario order", seed, epoch)).shuffle(order)
    return order


_BUILTIN_SETS: dict[str, Callable[[], list[Scenario]]] = {
    "support": lambda: _read_file(Path(__file__).with_name("sets") / "support.jsonl"),
    "sums": sum_scenarios,
    "pydoc": pydoc_scenarios,
}


def _read_file(path: Path) -> list[Scenario]:
    readers = {".jsonl": _jsonl_records, ".csv": _csv_records}
    reader = readers.get(path.suffix.lower())
    if reader is None or not path.is_file():
        raise DataError(_why_unreadable(path, tuple(readers)), path=path)
    scenarios: list[Scenario] = []
    line_of_id: dict[str, int] = {}
    for row, (line, record) in enumerate(reader(path), start=1):
        scenario = _scenario(record, path, line, row)
        if scenario.id in line_of_id:
            raise DataError(
                f"{scenario.id!r} is already the id of the scenario on line {line_of_id[scenario.id]}; "
                "give each scenario an id of its own, or none",
                path=path,
                line=line,
                column="id",
            )
        line_of_id[scenario.id] = line
        scenarios.append(scenario)
    if not scenarios:
        raise DataError("holds no scenarios; add one a line, with at least a question", path=path)
    return scenarios


def _why_unreadable(path: Path, suffixes: Sequence[str]) -> str:
    if path.exists():
        kind = "a folder" if path.is_dir() else f"a file ending in {path.suffix!r}"
        return f"is {kind}; scenarios are read from {' or '.join(suffixes)} files"
    near = _nearest(str(path), _BUILTIN_SETS)
    sets = " and ".join(f'"{name}"' for name in _BUILTIN_SETS)
    return f"no such file{near}; give the path of a {' or '.join(suffixes)} file, or a built-in set: {sets}"


def _nearest(name: str, known: Iterable[str]) -> str:
    matches = difflib.get_close_matches(name, list(known), n=1)
    return f" (did you mean {matches[0]!r}?)" if matches else ""


def _jsonl_records(path: Path) -> Iterator[tuple[int, Any]]:
    last = 0
    for line, record in jsonl.read(path):
        yield line, record
        last = line
    # The reader forgives a cut last line, as a crash leaves one in a log; here it is a mistake.
    raw = path.read_bytes().rstrip()
    if raw and (lines := raw.count(b"\n") + 1) > last:
        raise DataError("is not a whole JSON value; complete the line or remove it", path=path, line=lines)


def _csv_records(path: Path) -> Iterator[tuple[int, Any]]:
    rows = csv.reader(io.StringIO(_decoded(path), newline=""), strict=True)
    header: list[str] = []
    line = 1
    try:
        for cells in rows:
            is_blank = not any(cell.strip() for cell in cells)
            if header and not is_blank:
                yield line, _csv_record(header, cells, path, line)
            elif not is_blank:
                header = _checked_header(cells, path, line)
            line = rows.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"is not well-formed CSV ({error}); put cells with commas or line breaks in double quotes, "
            'and write a double quote inside them as ""',
            path=path,
            line=line,
        ) from error


def _decoded(path: Path) -> str:
    try:
        raw = path.read_bytes()
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path=path) from error
    except UnicodeDecodeError as error:
        raise DataError(
            f"byte {raw[error.start]:#04x} is not UTF-8; save the file as UTF-8",
            path=path,
            line=raw.count(b"\n", 0, error.start) + 1,
        ) from error


def _checked_header(cells: list[str], path: Path, line: int) -> list[str]:
    names = [cell.strip() for cell in cells]
    if len(names) == 1 and (mark := next((mark for mark in ";\t" if mark in names[0]), None)):
        raise DataError(f"cells are separated by {mark!r}; save with commas", path=path, line=line)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise DataError("the column is there twice; remove one", path=path, line=line, column=twice or "''")
    _refuse_unknown(names, path, line)
    if "question" not in names:
        raise DataError(
            "the column is missing; the first row must name the columns: " + ", ".join(COLUMNS),
            path=path,
            line=line,
            column="question",
        )
    return names


def _csv_record(header: list[str], cells: list[str], path: Path, line: int) -> dict[str, Any]:
    if len(cells) != len(header):
        raise DataError(
            f"has {len(cells)} cells where the first row names {len(header)} columns; "
            "put cells with commas in double quotes",
            path=path,
            line=line,
        )
    record: dict[str, Any] = dict(zip(header, cells, strict=True))
    for column in ("facts", "metadata"):
        cell = record.get(column, "").strip()
        if column == "facts" and cell and not cell.startswith(("[", "{")):
            record[column] = [
                [a.strip() for a in fact.split("|")] for fact in cell.split(";") if fact.strip()
            ]
        elif cell:
            record[column] = _json_cell(cell, path, line, column)
    return record


def _json_cell(cell: str, path: Path, line: int, column: str) -> Any:
    try:
        return json.loads(cell)
    except ValueError as error:
        raise DataError(
            f"the cell is not JSON ({error}); {_REMEDIES[column]}", path=path, line=line, column=column
        ) from error


def _scenario(record: Any, path: Path, line: int, row: int) -> Scenario:
    if not isinstance(record, dict):
        raise DataError(
            f'holds {json.dumps(record)[:60]}; write an object such as {{"question": "..."}}',
            path=path,
            line=line,
        )
    _refuse_unknown(record, path, line)
    given = {name: value for name, value in record.items() if value not in (None, "")}
    given.setdefault("id", f"row-{row}")
    question = given.get("question", "")
    if isinstance(question, str) and not question.strip():
        raise DataError(
            "the question is empty; write one or remove the row", path=path, line=line, column="question"
        )
    try:
        scenario = Scenario.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        column = str(first["loc"][0])
        raise DataError(
            f"{json.dumps(given[column], ensure_ascii=False)[:60]} cannot be used ({first['msg']}); "
            + _REMEDIES.get(column, "write text"),
            path=path,
            line=line,
            column=column,
        ) from error
    if not all(fact and all(alternative.strip() for alternative in fact) for fact in scenario.facts):
        raise DataError(
            "a fact or alternative is empty; " + _REMEDIES["facts"], path=path, line=line, column="facts"
        )
    return scenario


def _refuse_unknown(names: Iterable[str], path: Path, line: int) -> None:
    for name in names:
        if name not in COLUMNS:
            raise DataError(
                f"unknown column{_nearest(name, COLUMNS)}; the columns are: " + ", ".join(COLUMNS),
                path=path,
                line=line,
                column=name or "''",
            )
