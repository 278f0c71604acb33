"""Try again when trying again can help, and stop at a deadline.

Retried are 408, 409, 429, 5xx and connections that fail; a used-up quota is not. A small `Retry-After`
is honoured to the second, a huge one is capped, otherwise the wait doubles with jitter.
"""

from __future__ import annotations

import asyncio
import email.utils
import logging
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

from groundrule.errors import DeadlineError, LlmError, ProviderError

T = TypeVar("T")
logger = logging.getLogger(__name__)

_RETRIED_STATUS = {408, 409, 429}
_FINAL_CODES = {"insufficient_quota", "billing_hard_limit_reached"}


class UnreachableError(LlmError):
    """No connection, or it broke before the answer was complete."""


@dataclass(frozen=True)
class Retry:
    """How often, how long, and (for tests) by which clock."""

    attempts: int = 6
    first_wait_s: float = 0.5
    max_wait_s: float = 30.0
    max_retry_after_s: float = 60.0
    deadline_s: float = 600.0
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = time.monotonic
    draw: Callable[[], float] = random.random

    async def run(self, call: Callable[[float], Awaitable[T]], *, what: str) -> T:
        """The first answer of `call(seconds_left)`; or its last error, or `DeadlineError`."""
        ends = self.clock() + self.deadline_s
        attempt = 0
        while True:
            attempt += 1
            left = ends - self.clock()
            try:
                async with asyncio.timeout(max(left, 0.0)) as scope:
                    return await call(left)
            except TimeoutError as error:
                if not scope.expired():
                    raise
                raise DeadlineError(f"{what} gave no answer within {self.deadline_s:g} s") from error
            except LlmError as error:
                if not is_retryable(error) or attempt >= self.attempts:
                    raise
                wait = self.wait_s(attempt, getattr(error, "retry_after_s", None))
                if self.clock() + wait >= ends:
                    raise DeadlineError(
                        f"{what} gave no answer within {self.deadline_s:g} s; the last error was: {error}"
                    ) from error
                logger.info(
                    "%s; trying again in %.1f s (attempt %d of %d)", error, wait, attempt, self.attempts
                )
            await self.sleep(wait)

    def wait_s(self, attempt: int, retry_after_s: float | None) -> float:
        """Seconds before the next attempt, after `attempt` have failed."""
        if retry_after_s is not None and retry_after_s > 0:
            return min(retry_after_s, self.max_retry_after_s)
        longest = min(self.first_wait_s * 2.0 ** (attempt - 1), self.max_wait_s)
        return longest * (0.5 + 0.5 * self.draw())


def is_retryable(error: LlmError) -> bool:
    """True when the same call may succeed later."""
    if isinstance(error, ProviderError):
        return error.code not in _FINAL_CODES and (error.status in _RETRIED_STATUS or error.status >= 500)
    return isinstance(error, UnreachableError)


def parse_retry_after(value: str | None, *, now: float) -> float | None:
    """Seconds from a `Retry-After` header: a number, or an HTTP date seen from `now` (Unix seconds).

    None where the header is absent or says nothing usable.
    """
    text = (value or "").strip()
    try:
        seconds = float(text)
    except ValueError:
        try:
            seconds = email.utils.parsedate_to_datetime(text).timestamp() - now
        except (TypeError, ValueError, IndexError):
            return None
    return seconds if 0 <= seconds < float("inf") else None
