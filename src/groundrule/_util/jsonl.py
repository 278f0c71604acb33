"""JSON lines: one record a line, only a newline ends a record, UTF-8.

A crash can cut the last line. Reading reports it and gives the records before it; appending moves
it out of the way first, so the next record is never glued to half of another.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from groundrule._util.files import sync, write_atomic
from groundrule.errors import DataError

logger = logging.getLogger(__name__)

_BOM = b"\xef\xbb\xbf"


def encode(record: Any) -> bytes:
    """One record as a line, newline included.

    Text stays readable (no `\\u` escapes) unless it holds half a surrogate pair, which UTF-8 cannot
    carry. NaN and infinities are refused: JSON has no such numbers.
    """
    try:
        text = json.dumps(record, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8") + b"\n"
    except UnicodeEncodeError:
        text = json.dumps(record, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
        return text.encode("ascii") + b"\n"
    except ValueError as error:
        raise DataError(
            f"a number in the record is NaN or infinite and JSON cannot hold it ({error}); "
            "leave the value out, or use null with a reason beside it"
        ) from error


def read(path: str | Path) -> Iterator[tuple[int, Any]]:
    """Yield (line number, record). Blank lines are skipped; an unreadable line raises `DataError`.

    A last line without a newline that does not parse was cut by a crash: it is reported as a
    warning and left out.
    """
    path = Path(path)
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path=path) from error
    lines = raw.removeprefix(_BOM).split(b"\n")
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            yield number, _decode(line, path, number)
        except DataError as error:
            if number == len(lines):
                logger.warning("%s (the line has no newline: cut by a crash; left out)", error)
                return
            raise


def _decode(line: bytes, path: Path, number: int) -> Any:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"byte {line[error.start]:#04x} is not UTF-8; save the file as UTF-8",
            path=path,
            line=number,
            column=error.start + 1,
        ) from error
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        what = "a second record begins on the same line" if error.msg == "Extra data" else error.msg
        raise DataError(
            f"{what}; each line must hold one JSON value", path=path, line=number, column=error.pos + 1
        ) from error
    except ValueError as error:
        raise DataError(str(error), path=path, line=number) from error


def _refuse_constant(token: str) -> float:
    raise ValueError(f"{token} is not a JSON number")


def append(path: str | Path, record: Any) -> None:
    """Add one record at the end; a cut last line is moved to `<name>.cut` first, with a warning."""
    path = Path(path)
    line = encode(record)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as stream:
        _mend_last_line(stream, path)
        stream.write(line)
        stream.flush()
    sync(path)


def _mend_last_line(stream: Any, path: Path) -> None:
    """Make the file end in a newline, so that what follows starts a line of its own."""
    size = stream.seek(0, 2)
    if size == 0:
        return
    stream.seek(size - 1)
    if stream.read(1) == b"\n":
        return
    stream.seek(0)
    whole = stream.read()
    tail = whole[whole.rfind(b"\n") + 1 :]
    number = whole.count(b"\n") + 1
    try:
        _decode(tail.removeprefix(_BOM), path, number)
    except DataError:
        cut = path.with_name(path.name + ".cut")
        with cut.open("ab") as aside:
            aside.write(tail + b"\n")
        stream.truncate(size - len(tail))
        logger.warning("%s, line %d: cut by a crash; moved to %s before appending", path, number, cut.name)
    else:
        stream.write(b"\n")


def write(path: str | Path, records: Iterable[Any]) -> None:
    """Replace the file by these records, all or nothing."""
    write_atomic(Path(path), b"".join(encode(record) for record in records))
