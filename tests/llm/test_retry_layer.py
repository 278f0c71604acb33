"""Waiting and trying again, by a clock of our own."""

import asyncio
from email.utils import formatdate

import pytest

from groundrule.errors import DeadlineError, LlmError, ProviderError
from groundrule.llm.retry import Retry, UnreachableError, is_retryable, parse_retry_after


class Clock:
    """Time that passes only while something sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.now += seconds


def failing(*errors):
    script = iter(errors)

    async def call(seconds_left):
        error = next(script, None)
        if error is not None:
            raise error
        return "answer"

    return call


def policy(clock, **more):
    return Retry(sleep=clock.sleep, clock=clock, draw=lambda: 0.0, **more)


async def test_waits_double_up_to_a_limit_and_are_jittered():
    clock = Clock()
    errors = [UnreachableError("down")] * 5
    assert await policy(clock, max_wait_s=3.0).run(failing(*errors), what="m") == "answer"
    assert clock.waits == [0.25, 0.5, 1.0, 1.5, 1.5]


async def test_a_wait_that_would_pass_the_deadline_is_not_begun():
    clock = Clock()
    error = ProviderError("busy", status=429, retry_after_s=20.0)
    with pytest.raises(DeadlineError, match="within 30 s; the last error was: busy"):
        await policy(clock, deadline_s=30).run(failing(error, error, error), what="m")
    assert clock.waits == [20.0]


async def test_a_call_that_hangs_ends_at_the_deadline():
    async def hang(seconds_left):
        await asyncio.sleep(60)

    with pytest.raises(DeadlineError, match=r"m gave no answer within 0\.02 s"):
        await Retry(deadline_s=0.02).run(hang, what="m")


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 504, 529])
def test_errors_that_may_pass_are_retried(status):
    assert is_retryable(ProviderError("x", status=status))


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_errors_that_stay_are_not_retried(status):
    assert not is_retryable(ProviderError("x", status=status))


async def test_an_error_that_is_no_connection_fault_is_raised_at_once():
    clock = Clock()
    with pytest.raises(LlmError, match="unreadable"):
        await policy(clock).run(failing(LlmError("unreadable")), what="m")
    assert clock.waits == []


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("5", 5.0),
        ("0.5", 0.5),
        (formatdate(1_000_030, usegmt=True), 30.0),
        (formatdate(999_000, usegmt=True), None),
        ("-3", None),
        ("nan", None),
        ("inf", None),
        ("soon", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_read_as_seconds_or_as_a_date(header, seconds):
    assert parse_retry_after(header, now=1_000_000.0) == seconds


def test_retry_after_is_capped():
    assert Retry().wait_s(1, 86400.0) == 60.0
