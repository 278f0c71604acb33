"""Values on their way between interpreters, and when they are the expected ones."""

from __future__ import annotations

import json
import math
from collections import Counter, OrderedDict, deque, namedtuple
from datetime import date, datetime
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction

import pytest

from groundrule.rewards.verifiers.code_compare import same_output, same_value, shown
from groundrule.rewards.verifiers.code_values import CannotTravel, decode, encode

Point = namedtuple("Point", "x y")
Colour = IntEnum("Colour", "RED BLUE")


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        0,
        -1,
        2**200,
        1.5,
        math.inf,
        "",
        "é\udc80",
        [],
        [1, [2]],
        (1,),
        (),
        {1, 2},
        frozenset({3}),
        {"a": 1, (1, 2): [3]},
        b"\x00\xff",
        bytearray(b"x"),
        1 + 2j,
        deque([1, 2]),
        Decimal("1.50"),
        Fraction(-1, 3),
        date(2026, 1, 2),
        datetime(2026, 1, 2, 3, 4),
    ],
    ids=repr,
)
def test_a_plain_value_arrives_as_it_was(value):
    arrived = decode(json.loads(json.dumps(encode(value))))
    assert (type(arrived), arrived) == (type(value), value)


@pytest.mark.parametrize(
    ("value", "base"),
    [
        (Point(1, 2), (1, 2)),
        (Counter("aab"), {"a": 2, "b": 1}),
        (OrderedDict(a=1), {"a": 1}),
        (Colour.RED, 1),
    ],
    ids=["named tuple", "counter", "ordered dict", "int enum"],
)
def test_a_subclass_arrives_as_its_base(value, base):
    arrived = decode(json.loads(json.dumps(encode(value))))
    assert (type(arrived), arrived) == (type(base), base)


@pytest.mark.parametrize(
    "value", [object(), [lambda: 1], {"k": range(3)}], ids=["object", "function", "range"]
)
def test_what_is_not_plain_cannot_travel(value):
    with pytest.raises(CannotTravel, match="an object of type"):
        encode(value)


def test_what_holds_itself_cannot_travel():
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(CannotTravel, match="nested deeper than 64"):
        encode(endless)


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (5, 5),
        (5, 5.0),
        (0.1 + 0.2, 0.3),
        (1e12, 1e12 + 1),
        (2.0, 2),
        (math.nan, math.nan),
        (math.inf, math.inf),
        ([1, 2], (1, 2)),
        ([[1], 2.0], ([1], 2.0000001)),
        ({"a": [1]}, {"a": (1,)}),
        ({1, 2}, frozenset({2, 1})),
        (b"x", bytearray(b"x")),
        ((1,), (1,)),
        (2**80, 2**80),
        (None, None),
        ({}, {}),
    ],
    ids=repr,
)
def test_these_are_the_expected_values(expected, got):
    assert same_value(expected, encode(got))


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (5, 6),
        (5, 5.0000001),
        (True, 1),
        (1, True),
        (0, False),
        (0.3, 0.31),
        (math.nan, 1.0),
        (math.inf, 1e308),
        ((1, 2), [1, 2]),
        ([1, 2], [2, 1]),
        ([1, 2], [1, 2, 3]),
        ([1], {1}),
        ({1}, [1]),
        ({"a": 1}, {"a": 2}),
        ({"a": 1}, {"b": 1}),
        ({"1": 1}, {1: 1}),
        ("1", 1),
        (None, False),
        (b"x", "x"),
        (1.0, 10**400),
        ("a", ["a"]),
        (0, None),
        ([], None),
        (5, Decimal("NaN")),
        (5, Decimal("sNaN")),
    ],
    ids=repr,
)
def test_these_are_not(expected, got):
    assert not same_value(expected, encode(got))


@pytest.mark.parametrize(
    ("expected", "got", "same"),
    [(0.3, 0.1 + 0.2, False), (1, True, True), (1, 1.0, True), ([1], (1,), False), ({1}, {1}, True)],
    ids=repr,
)
def test_exact_is_pythons_own_equality(expected, got, same):
    assert same_value(expected, encode(got), is_exact=True) is same


@pytest.mark.parametrize(
    "forged",
    [
        ["list", 5],
        ["list"],
        [],
        ["set", [["list", []]]],
        ["dict", [[1]]],
        ["dict", [[1, 2, 3]]],
        ["int", "zz"],
        ["theirs", 0],
        ["unknown", []],
        [5, [5]],
        [[], 1],
        [{}, 1],
        ["Fraction", ["int", "0x" + "f" * 3_000_000], ["int", "0x" + "e" * 3_000_000]],
        ["Fraction", "1e999999999", 1],
        ["Decimal", "x"],
        {"a": 5},
        ["bytes", "zz"],
        ["complex", []],
    ],
    ids=lambda forged: repr(forged)[:30],
)
@pytest.mark.parametrize("expected", [5, [5], {1}, {1: 2}, b"z", None, Fraction(1)], ids=repr)
def test_a_malformed_value_is_equal_to_nothing(expected, forged):
    assert not same_value(expected, forged)


def test_a_deeply_nested_value_is_shown_without_harm():
    data: object = 1
    for _ in range(900):
        data = ["list", [data]]
    assert shown(data)


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ("6\n", "6"),
        ("1 2\n3\n", "1 2 \n3"),
        ("0.333333333333", "0.333333"),
        ("1e3", "1000.0000001"),
        ("YES", "YES\n\n"),
        ("2.50", "2.5"),
        ("", "\n"),
        ("nan", "nan"),
        ("-.5", "-0.5"),
    ],
)
def test_these_outputs_are_the_same(expected, got):
    assert same_output(expected, got)


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        ("5", "5 5"),
        ("1 2", "12"),
        ("007", "7"),
        ("6", "6.0"),
        ("0.5", "0.6"),
        ("0.5", "half"),
        ("Yes", "yes"),
        ("1.0", "nan"),
        ("1e5 2", "1e5"),
        ("ok", "\udcff ok"),
        ("v1.0", "v1.00"),
        ("1.0", "1_0"),
        ("3.0", "３.0"),
    ],
)
def test_these_outputs_are_not(expected, got):
    assert not same_output(expected, got)
