"""JSON lines: cut lines, marks, line ends and numbers that JSON does not have."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest

from groundrule._util import jsonl
from groundrule.errors import DataError


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "records.jsonl"


def records(path: Path) -> list[Any]:
    return [record for _, record in jsonl.read(path)]


def refusal(path: Path) -> str:
    with pytest.raises(DataError) as caught:
        records(path)
    return str(caught.value).removeprefix(str(path) + ", ")


def test_an_append_after_a_cut_line_is_a_record_of_its_own(path: Path) -> None:
    path.write_text('{"t":1}\n{"t":2')
    jsonl.append(path, {"t": 3})
    assert records(path) == [{"t": 1}, {"t": 3}]


def test_a_cut_line_is_reported_with_its_number(path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path.write_text('{"t":1}\n{"t":2')
    with caplog.at_level(logging.WARNING):
        jsonl.append(path, {"t": 3})
    assert "line 2: cut by a crash" in caplog.text


def test_a_cut_line_is_kept_aside(path: Path) -> None:
    path.write_text('{"t":1}\n{"t":2')
    jsonl.append(path, {"t": 3})
    assert path.with_name("records.jsonl.cut").read_text() == '{"t":2\n'


def test_reading_a_cut_file_gives_the_records_before_the_cut(path: Path) -> None:
    path.write_text('{"t":1}\n{"t":2')
    assert records(path) == [{"t": 1}]


def test_a_whole_last_line_without_newline_is_not_glued_to_the_next(path: Path) -> None:
    path.write_text('{"t":1}\n{"t":2}')
    jsonl.append(path, {"t": 3})
    assert records(path) == [{"t": 1}, {"t": 2}, {"t": 3}]


def test_a_broken_line_before_the_end_is_an_error_with_line_and_column(path: Path) -> None:
    path.write_text('{"t":1}\n{"t":}\n{"t":3}\n')
    assert refusal(path) == "line 2, column 6: Expecting value; each line must hold one JSON value"


def test_a_broken_last_line_with_a_newline_is_no_cut(path: Path) -> None:
    path.write_text('{"t":1}\n{"t":\n')
    assert refusal(path).startswith("line 2, column 6")


def test_two_records_on_one_line_are_an_error_that_says_so(path: Path) -> None:
    path.write_text('{"t":1}{"t":2}\n{"t":3}\n')
    assert refusal(path) == (
        "line 1, column 8: a second record begins on the same line; each line must hold one JSON value"
    )


def test_a_byte_order_mark_is_no_part_of_the_first_record(path: Path) -> None:
    path.write_bytes(b'\xef\xbb\xbf{"t":1}\n')
    assert records(path) == [{"t": 1}]


def test_half_a_surrogate_pair_comes_back_equal(path: Path) -> None:
    jsonl.write(path, [{"m": "a\ud835b"}])
    assert records(path) == [{"m": "a\ud835b"}]


def test_text_in_other_alphabets_is_written_readable(path: Path) -> None:
    jsonl.write(path, [{"m": "żółć"}])
    assert path.read_bytes() == '{"m":"żółć"}\n'.encode()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_that_json_does_not_have_is_refused_at_writing(path: Path, number: float) -> None:
    with pytest.raises(DataError, match="NaN or infinite"):
        jsonl.append(path, {"reward": number})
    assert not path.exists()


def test_the_token_nan_is_refused_at_reading(path: Path) -> None:
    path.write_text('{"reward":NaN}\n')
    assert refusal(path) == "line 1: NaN is not a JSON number"


def test_line_ends_of_windows_and_blank_lines_are_no_records(path: Path) -> None:
    path.write_bytes(b'{"t":1}\r\n{"t":2}\r\n\r\n')
    assert records(path) == [{"t": 1}, {"t": 2}]


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0c"])
def test_a_line_separator_inside_a_record_does_not_split_it(path: Path, separator: str) -> None:
    jsonl.write(path, [{"m": f"a{separator}b"}])
    assert records(path) == [{"m": f"a{separator}b"}]


def test_a_raw_line_separator_in_a_file_of_another_program_does_not_split_its_record(path: Path) -> None:
    path.write_bytes('{"m":"a\u2028b"}\n'.encode())
    assert records(path) == [{"m": "a\u2028b"}]


def test_line_numbers_count_blank_lines(path: Path) -> None:
    path.write_text('\n{"t":1}\n\n{"t":2}\n')
    assert [number for number, _ in jsonl.read(path)] == [2, 4]


def test_bytes_that_are_no_utf8_are_named_with_their_place(path: Path) -> None:
    path.write_bytes(b'{"m":"\xff"}\n')
    assert refusal(path) == "line 1, column 7: byte 0xff is not UTF-8; save the file as UTF-8"


def test_a_write_that_fails_leaves_the_old_file(path: Path) -> None:
    jsonl.write(path, [{"t": 1}])
    with pytest.raises(DataError):
        jsonl.write(path, [{"t": 2}, {"t": float("nan")}])
    assert records(path) == [{"t": 1}]
