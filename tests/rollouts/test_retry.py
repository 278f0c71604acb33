"""The retry decorator."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from groundrule.errors import ConfigError
from groundrule.rollouts import retry


class Flaky:
    """Fails a number of times, then gives 7."""

    def __init__(self, failures: int, error: BaseException) -> None:
        self.left, self.error, self.calls = failures, error, 0

    def __call__(self) -> int:
        self.calls += 1
        if self.left:
            self.left -= 1
            raise self.error
        return 7


def test_a_plain_function_is_called_until_it_succeeds() -> None:
    flaky = Flaky(2, ValueError("boom"))
    assert (retry(delay=0)(lambda: flaky())(), flaky.calls) == (7, 3)


async def test_an_async_function_is_called_until_it_succeeds() -> None:
    flaky = Flaky(2, ValueError("boom"))

    @retry(delay=0)
    async def ask() -> int:
        return flaky()

    assert (await ask(), flaky.calls) == (7, 3)


def test_the_last_error_is_raised_as_it_came() -> None:
    error = ValueError("boom")
    with pytest.raises(ValueError) as caught:
        retry(max_attempts=2, delay=0)(lambda: Flaky(9, error)())()
    assert caught.value is error


def test_no_more_attempts_than_asked_for_are_made() -> None:
    flaky = Flaky(9, ValueError("boom"))
    with pytest.raises(ValueError):
        retry(max_attempts=4, delay=0)(lambda: flaky())()
    assert flaky.calls == 4


def test_other_exceptions_go_through_at_once() -> None:
    flaky = Flaky(1, KeyError("k"))
    with pytest.raises(KeyError):
        retry(delay=0, exceptions=(ValueError,))(lambda: flaky())()
    assert flaky.calls == 1


async def test_a_cancellation_is_never_retried() -> None:
    flaky = Flaky(1, asyncio.CancelledError())

    @retry(delay=0)
    async def ask() -> int:
        return flaky()

    with pytest.raises(asyncio.CancelledError):
        await ask()
    assert flaky.calls == 1


def test_each_retry_is_told_with_its_attempt() -> None:
    seen: list[tuple[str, int]] = []
    flaky = Flaky(2, ValueError("boom"))
    retry(delay=0, on_retry=lambda error, attempt: seen.append((str(error), attempt)))(lambda: flaky())()
    assert seen == [("boom", 1), ("boom", 2)]


def test_the_waits_grow_by_the_factor(monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", waits.append)
    flaky = Flaky(3, ValueError("boom"))
    retry(max_attempts=4, delay=0.5, backoff_factor=3)(lambda: flaky())()
    assert waits == [0.5, 1.5, 4.5]


def test_the_decorated_function_stays_async() -> None:
    @retry()
    async def ask() -> int:
        return 7

    assert inspect.iscoroutinefunction(ask)


def test_zero_attempts_are_refused() -> None:
    with pytest.raises(ConfigError, match="max_attempts=0"):
        retry(max_attempts=0)
