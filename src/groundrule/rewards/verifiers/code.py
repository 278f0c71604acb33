"""Reward for code that passes its tests, run in a sandbox that it cannot decide from.

What passes is decided here, in this process. The candidate's interpreter sends plain values; what is expected of
them never enters it, so there is nothing in there to read, patch or forge. docs/sandbox.md has the rest.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from groundrule.data.group import TrajectoryGroup
from groundrule.data.score import Score
from groundrule.errors import ConfigError, DataError
from groundrule.rewards.verifiers.code_extract import extract_code
from groundrule.rewards.verifiers.code_run import Outcome, run_suite
from groundrule.rewards.verifiers.code_tests import read_tests
from groundrule.rewards.verifiers.sandbox import Limits, SandboxTier, TierName, sandbox_tier
from groundrule.rewards.verifiers.sandbox_failure import SandboxFailure
from groundrule.rewards.verifiers.scorer import NoAnswer, VerifierScorer

__all__ = ["code_scorer", "extract_code", "verify_code", "verify_code_async"]

_SLOTS = threading.BoundedSemaphore(os.cpu_count() or 1)
"""Candidates at a time: their time is wall time, and a queue of them must not eat it."""


def verify_code(
    code: str,
    tests: str | Sequence[Any],
    *,
    timeout_s: float = 10.0,
    memory_mb: int = 512,
    partial: bool = False,
    require: TierName | SandboxTier | None = None,
) -> Score:
    """1.0 when all tests pass, else 0.0; with `partial` the share that passes.

    `tests`: assert lines (text, or a list of lines), a list of `{"fn", "args", "kwargs", "expected"}`, or a list of
    `{"stdin", "stdout"}`. Each stdin test has `timeout_s` seconds; calls and assert lines have them together.
    `parts` hold `tests_passed` (up to the first failure, unless `partial`), `tests_total` and `seconds`; the
    explanation names the first failure with input, expectation and answer, or the limit that ended the run.

    A sandbox that fails is no score, and so are tests that fail by themselves (an import of theirs). Raises
    `ConfigError` where no sandbox can be had, or not the one that `require` insists on, and `DataError` for tests
    that cannot be read or could not fail.
    """
    if timeout_s <= 0 or memory_mb < 64:
        raise ConfigError(
            f"timeout_s is {timeout_s:g} and memory_mb {memory_mb}; a run needs time, and 64 MiB or more"
        )
    suite = read_tests(tests)
    limits = Limits(timeout_s=timeout_s, memory_mb=memory_mb)
    tier = sandbox_tier(require)
    with _SLOTS:
        started = time.perf_counter()
        try:
            outcome = run_suite(code, suite, tier, limits, goes_on=partial)
        except SandboxFailure as failure:
            return Score.none(f"sandbox_failure: {failure}")
        return _score(outcome, time.perf_counter() - started, partial=partial)


async def verify_code_async(
    code: str,
    tests: str | Sequence[Any],
    *,
    timeout_s: float = 10.0,
    memory_mb: int = 512,
    partial: bool = False,
    require: TierName | SandboxTier | None = None,
) -> Score:
    """`verify_code` without blocking the event loop."""
    return await asyncio.to_thread(
        verify_code, code, tests, timeout_s=timeout_s, memory_mb=memory_mb, partial=partial, require=require
    )


def group_tests(group: TrajectoryGroup) -> Any:
    """`metadata["tests"]` of the group."""
    if not (tests := group.metadata.get("tests")):
        raise NoAnswer('the group has no metadata["tests"]; put them there, or pass tests=')
    return tests


def code_scorer(
    *,
    timeout_s: float = 10.0,
    memory_mb: int = 512,
    partial: bool = False,
    require: TierName | SandboxTier | None = None,
    tests: Callable[[TrajectoryGroup], Any] = group_tests,
) -> VerifierScorer:
    """`verify_code` for groups: the last program in each last assistant message against the tests of the group.

    An answer without a program scores 0.0. Tests that are missing or cannot be read are no score.
    """

    def verify(answer: str, suite: Any) -> Score:
        code = extract_code(answer)
        if code is None:
            return Score(value=0.0, explanation="the answer holds no complete Python block", cost=0.0)
        try:
            return verify_code(
                code, suite, timeout_s=timeout_s, memory_mb=memory_mb, partial=partial, require=require
            )
        except DataError as error:
            return Score.none(f"the tests cannot be used: {error}")

    return VerifierScorer(verify, reference=tests)


def _score(outcome: Outcome, seconds: float, *, partial: bool) -> Score:
    parts = {
        "tests_passed": float(outcome.passed),
        "tests_total": float(outcome.total),
        "seconds": round(seconds, 3),
    }
    if outcome.broken:
        return Score.none(f"the tests fail by themselves: {outcome.broken}", parts=parts)
    share = outcome.passed / outcome.total
    value = share if partial else float(outcome.passed == outcome.total)
    text = outcome.failure or f"all {outcome.total} tests passed"
    return Score(value=value, explanation=text, parts=parts, cost=0.0)
