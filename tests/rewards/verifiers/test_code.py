"""The code verifier as its users call it: verdicts, partial credit, words, and the scorer of a group."""

from __future__ import annotations

import pytest

from groundrule.data import Trajectory, TrajectoryGroup
from groundrule.errors import ConfigError, DataError
from groundrule.rewards.verifiers.code import code_scorer, verify_code, verify_code_async

ADD = "def add(a, b):\n    return a + b"
HALF = "def add(a, b):\n    return 5"
CALLS = [{"fn": "add", "args": [2, 3], "expected": 5}, {"fn": "add", "args": [1, 1], "expected": 2}]


def why(code: str, tests: object, **options: object) -> str:
    score = verify_code(code, tests, **options)
    assert score.value == 0.0, score
    return score.explanation


def test_all_tests_passed_is_one():
    score = verify_code(ADD, CALLS)
    assert (score.value, score.parts["tests_passed"], score.parts["tests_total"]) == (1.0, 2.0, 2.0)


def test_one_failed_test_is_nothing():
    assert verify_code(HALF, CALLS).value == 0.0


def test_partial_credit_is_the_share_that_passes():
    assert (
        verify_code(HALF, [*CALLS, {"fn": "add", "args": [0, 5], "expected": 5}], partial=True).value == 2 / 3
    )


def test_partial_credit_goes_on_after_a_failure_in_a_test_program():
    assert verify_code(HALF, "x = 5\nassert add(1, 1) == 2\nassert add(2, 3) == x", partial=True).value == 0.5


def test_a_statement_that_fails_after_the_last_assert_counts_as_a_failed_test():
    assert verify_code(ADD, "x = 1\nassert add(x, 1) == 2\nadd(1, 'a')", partial=True).value == 0.5


def test_partial_credit_counts_each_input_output_test():
    tests = [{"stdin": "1", "stdout": "1"}, {"stdin": "2", "stdout": "4"}]
    assert (
        verify_code("print(int(input()) ** 2)", [*tests, {"stdin": "3", "stdout": "6"}], partial=True).value
        == 2 / 3
    )


def test_the_first_failure_is_named_with_input_expectation_and_answer():
    assert why(HALF, CALLS) == "test 2 of 2: add(1, 1): expected 2, got 5"


def test_a_failed_assert_line_is_named_with_what_came():
    assert why(HALF, "x = 1\nassert add(x, 1) == 2") == "assert add(x, 1) == 2: got 5, wanted == 2"


def test_a_failed_output_is_named_with_what_came():
    assert (
        why("print(7)", [{"stdin": "1", "stdout": "8"}]) == "test 1 of 1: stdin '1': expected '8', got '7\\n'"
    )


def test_long_values_are_shortened():
    assert len(why("def f(): return 'x' * 100000", [{"fn": "f", "expected": "y" * 100000}])) < 1000


@pytest.mark.parametrize(("power", "value"), [(5000, 1.0), (4999, 0.0)])
def test_a_huge_number_is_compared(power, value):
    assert verify_code(f"def f(): return 10 ** {power}", [{"fn": "f", "expected": 10**5000}]).value == value


def test_an_error_is_named_with_its_line():
    code = "def f(x):\n    y = 1\n    return y / x"
    assert why(code, [{"fn": "f", "args": [0], "expected": 1}]) == (
        "test 1 of 1: f(0): expected 1, ZeroDivisionError: division by zero (line 3)"
    )


def test_an_error_at_import_fails_every_test():
    assert why("import nowhere_to_be_found", CALLS).startswith("test 1 of 2: import: ModuleNotFoundError")


def test_a_syntax_error_is_a_failure():
    assert "SyntaxError" in why("def f(:", CALLS)


def test_a_program_that_breaks_after_the_right_output_fails():
    assert "ZeroDivisionError" in why("print(4)\n1 / 0", [{"stdin": "", "stdout": "4"}])


def test_a_program_may_end_by_exit():
    assert verify_code("print(4)\nexit()", [{"stdin": "", "stdout": "4"}]).value == 1.0


def test_an_object_that_is_no_plain_value_is_a_failure_with_the_reason():
    assert "not a plain value" in why("def f(): return object()", [{"fn": "f", "expected": 1}])


def test_a_function_that_is_missing_is_a_failure():
    assert "add" in why("def other(): pass", CALLS)


def test_a_method_is_called_on_an_instance():
    code = "class Solution:\n    def double(self, x): return 2 * x"
    assert verify_code(code, [{"fn": "Solution.double", "args": [4], "expected": 8}]).value == 1.0


def test_keyword_arguments_are_passed():
    tests = [{"fn": "f", "args": [1], "kwargs": {"by": 3}, "expected": 3}]
    assert verify_code("def f(x, *, by): return x * by", tests).value == 1.0


def test_a_killed_run_fails_the_calls_that_were_to_follow():
    code = "import os\ndef f(x):\n    if x == 2: os._exit(0)\n    return x"
    tests = [{"fn": "f", "args": [n], "expected": n} for n in (1, 2, 3)]
    score = verify_code(code, tests, partial=True)
    assert (score.value, score.explanation) == (
        1 / 3,
        "test 2 of 3: f(2): expected 2, exit: ended with code 0 before it answered",
    )


def test_time_is_named_when_it_ran_out():
    assert ", timeout: " in why("def f():\n    while True: pass", [{"fn": "f", "expected": 1}], timeout_s=0.5)


@pytest.mark.parametrize(
    ("code", "tests"),
    [
        (
            "class Stack:\n    def __init__(self): self.items = []\n    def push(self, x): self.items.append(x)\n"
            "    def pop(self): return self.items.pop()\n    def __len__(self): return len(self.items)",
            "s = Stack()\ns.push(3)\nassert len(s) == 1\nassert s.items == [3]\nassert s.pop() == 3",
        ),
        ("def twice(f, x): return f(f(x))", "assert twice(lambda x: x + 1, 3) == 5"),
        ("def sort_in_place(xs): xs.sort()", "xs = [3, 1, 2]\nsort_in_place(xs)\nassert xs == [1, 2, 3]"),
        (
            "def turn(m): m[:] = [list(r) for r in zip(*m)]",
            "m = [[1, 2], [3, 4]]\nturn(m)\nassert m == [[1, 3], [2, 4]]",
        ),
        ("def count(n):\n    for k in range(n): yield k", "assert list(count(3)) == [0, 1, 2]"),
        (
            "def f(x):\n    if x < 0: raise ValueError('negative')\n    return x",
            "try:\n    f(-1)\nexcept ValueError as error:\n    said = str(error)\nassert said == 'negative'",
        ),
        (
            "class Odd(Exception): pass\ndef f(x): raise Odd('no')",
            "try:\n    f(1)\n    odd = False\nexcept Odd:\n    odd = True\nassert odd",
        ),
        (
            "class P:\n    def __init__(self, x): self.x = x\n    def __eq__(self, o): return self.x == o.x\n"
            "    def __add__(self, o): return P(self.x + o.x)",
            "assert P(1) == P(1)\nassert P(1) != P(2)\nassert P(1) + P(2) == P(3)\nassert isinstance(P(1), P)",
        ),
        ("def f(x): return x + 1", "def check(candidate):\n    assert candidate(1) == 2\ncheck(f)"),
        ("def f(x): return x + 1", "def test_f():\n    assert f(1) == 2"),
        ("def pow(a, b):\n    return a ** b", "assert pow(2, 3) == 8\nassert pow(2, 0) == 1"),
        (
            "from collections import Counter\ndef f(x): return Counter(x)",
            "assert f('aab') == {'a': 2, 'b': 1}",
        ),
        (
            "from fractions import Fraction\ndef f(): return Fraction(1, 3)",
            "from fractions import Fraction\nassert f() == Fraction(1, 3)",
        ),
        (
            "def f(): return {(1, 2): {3}, 'k': b'\\x00', 'n': None}",
            "assert f() == {(1, 2): {3}, 'k': b'\\x00', 'n': None}",
        ),
        ("def f(): return 10 ** 5000", "assert f() == 10 ** 5000"),
        ("def f(): return float('nan')", "import math\nassert math.isnan(f())"),
        ("LIMIT = 7\ndef f(): return LIMIT", "assert f() == LIMIT == 7"),
    ],
    ids=[
        "object",
        "callback",
        "changed list",
        "changed matrix",
        "generator",
        "error",
        "own error",
        "own equality",
        "check function",
        "test function",
        "a built-in's name",
        "counter",
        "fraction",
        "odd keys",
        "huge number",
        "nan",
        "constant",
    ],
)
def test_a_test_program_is_ordinary_python(code, tests):
    assert verify_code(code, tests).explanation.startswith("all ")


def test_a_built_in_function_does_not_pass_for_the_candidates():
    assert verify_code("def other(): pass", "assert pow(2, 3) == 8").value == 0.0


def test_a_loop_in_the_tests_ends_with_the_time():
    assert "timeout" in why("def f(n):\n    while True: yield n", "assert list(f(1)) == []", timeout_s=1)


def test_tests_whose_own_import_fails_are_no_score():
    score = verify_code(ADD, "import nowhere_to_be_found\nassert add(1, 1) == 2")
    assert score.reason == (
        "the tests fail by themselves: ModuleNotFoundError: No module named 'nowhere_to_be_found'"
    )


def test_tests_that_pass_an_object_of_their_own_are_no_score():
    score = verify_code("def f(x): return x", "class Node: pass\nassert f(Node()) is not None")
    assert "an object of type Node cannot be passed" in str(score.reason)


def test_the_same_program_gets_the_same_verdict_where_it_prints_a_set():
    tests = [{"stdin": "", "stdout": "placeholder"}]
    code = "print(*{'amber', 'blue', 'coral', 'dune', 'ebony'})"
    assert len({verify_code(code, tests).explanation for _ in range(4)}) == 1


@pytest.mark.parametrize("options", [{"timeout_s": 0}, {"memory_mb": 8}])
def test_limits_that_cannot_work_are_refused(options):
    with pytest.raises(ConfigError, match="timeout_s is"):
        verify_code(ADD, CALLS, **options)


def test_arguments_that_are_no_plain_values_are_refused():
    with pytest.raises(DataError, match="an object of type object"):
        verify_code(ADD, [{"fn": "add", "args": [object()], "expected": 1}])


async def test_the_async_form_gives_the_same_score():
    assert (await verify_code_async(HALF, CALLS, partial=True)).value == 0.5


# The scorer


def group_of(*answers: str, **metadata: object) -> TrajectoryGroup:
    asked = {"role": "user", "content": "Write add."}
    members = [Trajectory(messages_and_choices=[asked, {"role": "assistant", "content": a}]) for a in answers]
    return TrajectoryGroup(members, metadata=metadata)


async def test_a_group_is_scored_in_its_order():
    group = group_of(f"```python\n{HALF}\n```", "I cannot.", f"So:\n```python\n{ADD}\n```", tests=CALLS)
    scores = await code_scorer(partial=True).score(group)
    assert [score.value for score in scores] == [0.5, 0.0, 1.0]


async def test_a_group_without_tests_has_no_scores():
    scores = await code_scorer().score(group_of(f"```python\n{ADD}\n```"))
    assert [score.value for score in scores] == [None]


async def test_tests_that_cannot_be_read_are_no_scores():
    scores = await code_scorer().score(group_of(f"```python\n{ADD}\n```", tests=[{"call": "add"}]))
    assert "unknown key 'call'" in str(scores[0].reason)
