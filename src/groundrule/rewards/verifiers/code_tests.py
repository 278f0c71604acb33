"""What a task's tests ask for: calls with expected values, programs with expected output, or a test program.

Assert lines of the commonest form, `assert f(1, 2) == 3`, become calls: then the expected value never leaves the
grader. Every other text stays a program, which runs in an interpreter of its own (`code_examiner.py`).
"""

from __future__ import annotations

import ast
import builtins
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from groundrule.errors import DataError

SIGNS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}
Node = TypeVar("Node", bound=ast.AST)

CALL_KEYS = {"fn", "args", "kwargs", "expected"}
IO_KEYS = {"stdin", "stdout"}


@dataclass(frozen=True)
class CallTest:
    """One call of a function and what it must return."""

    fn: str
    """A function, or `Class.method` of a class that is made without arguments."""
    args: Sequence[Any]
    expected: Any
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    is_exact: bool = False
    """True: as Python's `==` has it, for an assert. False: with the tolerance and rules of `code_compare.py`."""


@dataclass(frozen=True)
class IoTest:
    """What a program reads and what it must print."""

    stdin: str
    stdout: str


@dataclass(frozen=True)
class TestProgram:
    """Python statements, some of which are tests; the others prepare them."""

    __test__ = False  # Its name is no invitation to pytest.

    statements: tuple[dict[str, Any], ...]
    names: tuple[str, ...]
    """What it uses and does not define itself: the candidate's to give."""

    @property
    def total(self) -> int:
        return sum(statement["kind"] == "test" for statement in self.statements)


Suite = list[CallTest] | list[IoTest] | TestProgram


def read_tests(tests: str | Sequence[Any]) -> Suite:
    """Assert lines (one text or a list of them), `{fn, args, kwargs, expected}` or `{stdin, stdout}`.

    Raises `DataError` where they are none of these, are of several kinds, or could not fail.
    """
    if isinstance(tests, str):
        return _read_program(tests)
    if not isinstance(tests, Sequence) or not tests:
        raise DataError(f"tests are {tests!r}; they must be assert lines or a list that is not empty")
    if all(isinstance(test, str) for test in tests):
        return _read_program("\n".join(tests))
    if not all(isinstance(test, Mapping) for test in tests):
        raise DataError("tests hold several kinds; give assert lines only, or dicts only")
    if all("stdout" in test for test in tests):
        return [_read_io(test, index) for index, test in enumerate(tests, start=1)]
    return [_read_call(test, index) for index, test in enumerate(tests, start=1)]


def _read_call(test: Mapping[str, Any], index: int) -> CallTest:
    _check_keys(test, index, CALL_KEYS, required={"fn", "expected"})
    args, kwargs = test.get("args", []), test.get("kwargs", {})
    if not isinstance(test["fn"], str) or not all(part.isidentifier() for part in test["fn"].split(".")):
        raise DataError(f"test {index}: fn is {test['fn']!r}; it must be a name, or Class.method")
    if not isinstance(args, list | tuple) or not isinstance(kwargs, Mapping):
        raise DataError(
            f"test {index}: args is {args!r} and kwargs {kwargs!r}; they must be a list and a dict"
        )
    return CallTest(test["fn"], args, test["expected"], kwargs)


def _read_io(test: Mapping[str, Any], index: int) -> IoTest:
    _check_keys(test, index, IO_KEYS, required={"stdout"})
    stdin, stdout = test.get("stdin", ""), test["stdout"]
    if not isinstance(stdin, str) or not isinstance(stdout, str):
        raise DataError(f"test {index}: stdin and stdout must be text")
    return IoTest(stdin, stdout)


def _check_keys(test: Mapping[str, Any], index: int, known: set[str], required: set[str]) -> None:
    for key in test:
        if key not in known:
            near = difflib.get_close_matches(str(key), known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(sorted(known))}"
            raise DataError(f"test {index}: unknown key {key!r}{hint}")
    if missing := required - set(test):
        raise DataError(f"test {index}: {', '.join(sorted(missing))} is missing")


# Assert lines


def _read_program(text: str) -> list[CallTest] | TestProgram:
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError) as error:
        raise DataError(f"tests are not Python: {error}", line=getattr(error, "lineno", None)) from error
    calls = [call for node in body if (call := _call_of(node)) is not None]
    if body and len(calls) == len(body) and _are_the_candidates({call.fn for call in calls}):
        return calls
    program = TestProgram(tuple(_statements(body)), _names(body))
    if not program.total:
        raise DataError(
            "tests could not fail: they hold no assert, no function test_... and no call at their top level"
        )
    return program


def _call_of(node: ast.stmt) -> CallTest | None:
    """`assert f(literals) == literal`, either way round; None for anything else."""
    if not (isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare)):
        return None
    if len(node.test.ops) != 1 or not isinstance(node.test.ops[0], ast.Eq):
        return None
    left, right = node.test.left, node.test.comparators[0]
    call, value = (left, right) if isinstance(left, ast.Call) else (right, left)
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name)):
        return None
    try:
        args = [ast.literal_eval(argument) for argument in call.args]
        kwargs = {word.arg: ast.literal_eval(word.value) for word in call.keywords if word.arg}
        expected = ast.literal_eval(value)
    except (ValueError, TypeError, SyntaxError):
        return None
    if len(kwargs) != len(call.keywords):
        return None
    return CallTest(call.func.id, args, expected, kwargs, is_exact=True)


def _statements(body: Sequence[ast.stmt]) -> list[dict[str, Any]]:
    """Top-level asserts are tests, and so are functions `test_...` that nobody calls.

    Where there are neither, bare calls are: `check(add)`.
    """
    called = {call.func.id for call in _nodes(body, ast.Call) if isinstance(call.func, ast.Name)}
    functions = [
        node
        for node in body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and node.name not in called
    ]
    has_asserts = any(isinstance(node, ast.Assert) for node in body) or bool(functions)
    found = [_statement(node, calls_are_tests=not has_asserts) for node in body]
    return found + [{"kind": "test", "source": f"{function.name}()"} for function in functions]


def _statement(node: ast.stmt, *, calls_are_tests: bool) -> dict[str, Any]:
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    is_test = isinstance(node, ast.Assert) or (calls_are_tests and is_call)
    is_import = isinstance(node, ast.Import | ast.ImportFrom)
    statement: dict[str, Any] = {
        "kind": "test" if is_test else "import" if is_import else "other",
        "source": ast.unparse(node),
    }
    if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare) and len(node.test.ops) == 1:
        left, right = ast.unparse(node.test.left), ast.unparse(node.test.comparators[0])
        statement["compared"] = [left, SIGNS[type(node.test.ops[0])], right]
    return statement


def _names(body: Sequence[ast.stmt]) -> tuple[str, ...]:
    """Names that the tests use and do not make.

    A built-in name is Python's own (a candidate that redefines `abs` must not be measured with it), unless the
    tests use no other name: then the task was to write that function.
    """
    names = _nodes(body, ast.Name)
    used = {name.id for name in names if isinstance(name.ctx, ast.Load)}
    made = {name.id for name in names if not isinstance(name.ctx, ast.Load)}
    made |= {node.name for node in _nodes(body, ast.FunctionDef)} | {
        n.name for n in _nodes(body, ast.ClassDef)
    }
    made |= {argument.arg for argument in _nodes(body, ast.arg)}
    made |= {(alias.asname or alias.name).partition(".")[0] for alias in _nodes(body, ast.alias)}
    free = used - made
    return tuple(sorted(free - _BUILTINS or free))


def _are_the_candidates(functions: set[str]) -> bool:
    return not functions & _BUILTINS or functions <= _BUILTINS


def _nodes(body: Sequence[ast.stmt], kind: type[Node]) -> list[Node]:
    return [node for statement in body for node in ast.walk(statement) if isinstance(node, kind)]


_BUILTINS = set(dir(builtins))
