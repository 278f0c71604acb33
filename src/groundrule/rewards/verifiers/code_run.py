"""Run a suite against a candidate and count what passed. The verdict is made here, outside every sandbox."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groundrule.errors import DataError
from groundrule.rewards.verifiers.code_compare import same_output, same_value, shorten, shown, written
from groundrule.rewards.verifiers.code_tests import CallTest, IoTest, Suite, TestProgram
from groundrule.rewards.verifiers.code_values import CannotTravel, encode
from groundrule.rewards.verifiers.sandbox import Limits, SandboxTier
from groundrule.rewards.verifiers.sandbox_channel import Stopped
from groundrule.rewards.verifiers.sandbox_run import SandboxRun

CANDIDATE = ("code_candidate", "code_peer", "code_values")
EXAMINER = ("code_examiner", "code_peer", "code_values")
PASSED_ON = {"do", "args", "value", "raised", "changed"}


@dataclass(frozen=True)
class Outcome:
    """What a suite said about a candidate."""

    passed: int
    total: int
    failure: str = ""
    """The first test that failed, what it expected and what came; "" when all passed."""
    broken: str = ""
    """Not empty: the tests themselves cannot be used, and the numbers mean nothing."""


def run_suite(code: str, suite: Suite, tier: SandboxTier, limits: Limits, *, goes_on: bool) -> Outcome:
    """`goes_on`: also run what comes after the first failure. Raises `SandboxFailure` and `DataError`.

    A run that is killed fails what it had not answered: the calls that were to follow, the rest of a test program.
    Input-output tests have a run each.
    """
    if isinstance(suite, TestProgram):
        return _run_program(code, suite, tier, limits, goes_on=goes_on)
    wrongs: list[str | None] = []
    if calls := [test for test in suite if isinstance(test, CallTest)]:
        _run_calls(code, calls, tier, limits, wrongs, goes_on=goes_on)
    for test in suite:
        if isinstance(test, IoTest) and (goes_on or not any(wrongs)):
            wrongs.append(_io_fault(code, test, tier, limits))
    first = next(((i, wrong) for i, wrong in enumerate(wrongs, start=1) if wrong is not None), None)
    failure = f"test {first[0]} of {len(suite)}: {first[1]}" if first else ""
    return Outcome(wrongs.count(None), len(suite), failure)


# Calls


def _run_calls(
    code: str,
    tests: Sequence[CallTest],
    tier: SandboxTier,
    limits: Limits,
    wrongs: list[str | None],
    *,
    goes_on: bool,
) -> None:
    """Append what is wrong with each call, None where nothing is. Inputs leave one at a time, expectations never."""
    questions = [_question(test, index) for index, test in enumerate(tests, start=1)]
    doing: CallTest | None = None
    try:
        with SandboxRun(tier, limits) as run:
            if error := _import(run, code):
                wrongs.append(f"import: {error}")
                return
            for doing, question in zip(tests, questions, strict=True):
                wrong = _answer_fault(run.ask(question), doing)
                wrongs.append(wrong and f"{_wanted(doing)}, {wrong}")
                if wrong and not goes_on:
                    return
    except Stopped as stopped:
        wrongs.append(f"{_wanted(doing) if doing else 'import'}, {_stop_text(stopped)}")


def _wanted(test: CallTest) -> str:
    given = [written(arg) for arg in test.args] + [f"{name}={written(v)}" for name, v in test.kwargs.items()]
    return f"{test.fn}({shorten(', '.join(given))}): expected {written(test.expected)}"


def _question(test: CallTest, index: int) -> dict[str, Any]:
    try:
        return {"do": "call_named", "args": [test.fn, encode(list(test.args)), encode(dict(test.kwargs))]}
    except CannotTravel as error:
        raise DataError(f"test {index}: its arguments hold {error}; they must be plain values") from error


def _import(run: SandboxRun, code: str) -> str | None:
    """Send harness and code; what the import raised, if anything."""
    run.load(*CANDIDATE)
    return _error_text(run.ask({"do": "load", "args": [code]}))


def _answer_fault(answer: Mapping[str, Any], test: CallTest) -> str | None:
    if error := _error_text(answer):
        return error
    if "value" not in answer:
        return "forgery: an answer without a value"
    data = answer["value"]
    if same_value(test.expected, data, is_exact=test.is_exact):
        return None
    if isinstance(data, list) and data[:1] in (["theirs"], ["yours"], ["error"]):
        return "got an object that is not a plain value and cannot be compared"
    return f"got {shown(data)}"


# Input and output


def _io_fault(code: str, test: IoTest, tier: SandboxTier, limits: Limits) -> str | None:
    given = f"stdin {written(test.stdin)}: expected {written(test.stdout)}"
    try:
        with SandboxRun(tier, limits, stdin=test.stdin.encode("utf-8", "surrogatepass")) as run:
            run.load("code_program")
            run.tell({"code": code})
            ended = run.finish()
    except Stopped as stopped:
        return f"{given}, {_stop_text(stopped)}"
    if ended.code != 0:
        lines = ended.stderr.decode("utf-8", "replace").strip().splitlines() or [""]
        kind, _, message = lines[-1].partition(": ")
        return f"{given}, {_with_cause(kind, message)} (exit code {ended.code})"
    got = ended.stdout.decode("utf-8", "surrogateescape")
    return None if same_output(test.stdout, got) else f"{given}, got {written(got)}"


# A test program


def _run_program(
    code: str, suite: TestProgram, tier: SandboxTier, limits: Limits, *, goes_on: bool
) -> Outcome:
    """Candidate and tests in two sandboxes; each message of one is passed to the other, and nothing else is."""
    said: dict[str, Any] = {"results": [], "failures": []}
    stopped_by = ""
    try:
        with SandboxRun(tier, limits) as candidate, SandboxRun(tier, limits) as examiner:
            deadline = time.monotonic() + limits.timeout_s
            candidate.begin(deadline)
            examiner.begin(deadline)
            if error := _import(candidate, code):
                return Outcome(0, suite.total, f"import: {error}")
            examiner.load(*EXAMINER)
            defined = _defined(
                candidate.ask({"do": "names", "args": [["list", list(suite.names)]]}), suite.names
            )
            task = {"names": defined, "statements": suite.statements, "stop": not goes_on}
            said = examiner.ask(task)
            while not said.get("done"):
                said = examiner.ask(_passed_on(candidate.ask(_passed_on(said))))
    except Stopped as stopped:
        stopped_by = f"test {len(said['results']) + 1} of {suite.total}: {_stop_text(stopped)}"
    failure = next(iter(said["failures"]), stopped_by)
    results = said["results"]
    return Outcome(sum(results), max(suite.total, len(results)), failure, broken=said.get("broken") or "")


def _passed_on(message: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key in PASSED_ON}


def _defined(answer: Mapping[str, Any], wanted: Sequence[str]) -> dict[str, Any]:
    """The names that were asked for and no others: a candidate must not hand the tests an `abs` of its own."""
    try:
        kind, pairs = answer["value"]
        found = {name: value for name, value in pairs if isinstance(name, str)}
    except (KeyError, TypeError, ValueError) as error:
        raise Stopped("forgery", "the candidate's names are malformed") from error
    return {name: found[name] for name in wanted if kind == "dict" and name in found}


# Words


def _error_text(answer: Mapping[str, Any]) -> str | None:
    """What the candidate raised, in its own words: they explain, and decide nothing."""
    if "raised" not in answer:
        return None
    raised = answer["raised"] if isinstance(answer["raised"], dict) else {}
    match raised.get("types"), raised.get("message"):
        case [str(kind), *_], str(message):
            line = f" (line {raised['line']})" if isinstance(raised.get("line"), int) else ""
            return _with_cause(kind, message) + line
        case _:
            return "an error without a name"


def _with_cause(kind: str, message: str) -> str:
    text = shorten(f"{kind}: {message}" if message else kind)
    return f"{cause}: {text}" if (cause := _cause_of(kind, message)) else text


def _cause_of(kind: str, message: str) -> str:
    """The limit that this error comes from, if it looks like one."""
    if kind == "MemoryError" or "Cannot allocate memory" in message:
        return "memory"
    if (kind == "BlockingIOError" and "temporarily unavailable" in message) or "start new thread" in message:
        return "processes"
    return "disk" if "File too large" in message or "No space left" in message else ""


def _stop_text(stopped: Stopped) -> str:
    return f"{stopped.cause}: {stopped}"
