"""What counts as a test, and what is refused because it could not be one."""

from __future__ import annotations

import pytest

from groundrule.errors import DataError
from groundrule.rewards.verifiers.code_tests import CallTest, IoTest, TestProgram, read_tests


def test_assert_lines_of_the_common_form_become_calls():
    assert read_tests("assert add(2, b=3) == 5\nassert [1, (2,)] == f()") == [
        CallTest("add", [2], 5, {"b": 3}, is_exact=True),
        CallTest("f", [], [1, (2,)], {}, is_exact=True),
    ]


def test_a_list_of_lines_is_read_as_one_text():
    assert read_tests(["assert f(1) == 1", "assert f(2) == 2"])[1].args == [2]


@pytest.mark.parametrize(
    ("text", "total"),
    [
        ("x = 1\nassert f(x) == 1", 1),
        ("assert f(1) != 1\nassert f(2) == 2", 2),
        ("assert f(*[1]) == 1", 1),
        ("assert f(**{'a': 1}) == 1", 1),
        ("assert f(1) == 1 == 1", 1),
        ("def check(c):\n    assert c(1) == 1\ncheck(f)", 1),
        ("def test_a():\n    assert f(1) == 1\ndef test_b():\n    assert f(2) == 2", 2),
        ("def test_a():\n    assert f(1) == 1\ntest_a()", 1),
        ("s = S()\ns.push(1)\nassert s.pop() == 1", 1),
    ],
)
def test_other_text_is_a_program_with_so_many_tests(text, total):
    suite = read_tests(text)
    assert (type(suite), suite.total) == (TestProgram, total)


def test_a_program_asks_for_the_names_that_it_does_not_make():
    text = "import math\ndef g(y): return y\nx = f(1)\nassert len(g(x)) == H.size + math.pi"
    assert read_tests(text).names == ("H", "f")


def test_a_program_of_nothing_but_a_builtin_name_asks_for_it():
    assert read_tests("x = 2\nassert pow(x, 3) == 8").names == ("pow",)


def test_dicts_are_calls_or_input_and_output():
    assert read_tests([{"fn": "f", "expected": 1}]) == [CallTest("f", [], 1)]
    assert read_tests([{"stdout": "1"}]) == [IoTest("", "1")]


@pytest.mark.parametrize(
    ("tests", "message"),
    [
        ([], "not empty"),
        (None, "not empty"),
        ("", "could not fail"),
        ("x = f(1)", "could not fail"),
        ("def check(c):\n    assert c(1) == 1", "could not fail"),
        ("class T:\n    def test_a(self): assert f(1) == 2", "could not fail"),
        ("assert f(1) ==", "not Python"),
        (["assert f(1) == 1", {"fn": "f", "expected": 1}], "several kinds"),
        ([{"fn": "f", "expected": 1}, {"stdin": "", "stdout": ""}], "test 2: unknown key 'stdin'"),
        ([{"fn": "f", "expect": 1}], "did you mean 'expected'"),
        ([{"fn": "f"}], "expected is missing"),
        ([{"fn": "f(1)", "expected": 1}], "must be a name"),
        ([{"fn": "f", "args": 3, "expected": 1}], "must be a list and a dict"),
        ([{"stdin": 3, "stdout": "3"}], "must be text"),
    ],
)
def test_tests_that_cannot_be_used_are_refused(tests, message):
    with pytest.raises(DataError, match=message):
        read_tests(tests)
