"""`retry`: call a flaky function again, waiting longer each time."""

from __future__ import annotations

import asyncio
import functools
import inspect
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar, cast

from groundrule.errors import ConfigError

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")


def retry(
    max_attempts: int = 3,
    delay: float = 0.25,
    backoff_factor: float = 2,
    exceptions: tuple[type[Exception], ...] = (Exception,),
    on_retry: Callable[[Exception, int], None] | None = None,
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorate a plain or async function so that these exceptions lead to another attempt.

    The waits are `delay`, `delay * backoff_factor`, ... seconds. `on_retry(error, attempt)` is
    called before each wait; `attempt` counts from 1. The last error is raised as it came. What is
    not in `exceptions`, and every cancellation, goes through at once.
    """
    if max_attempts < 1:
        raise ConfigError(f"max_attempts={max_attempts} would never call the function; use at least 1")

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        def waits() -> Iterator[tuple[int, float]]:
            for attempt in range(1, max_attempts):
                yield attempt, delay * backoff_factor ** (attempt - 1)

        def note(error: Exception, attempt: int) -> None:
            name = getattr(function, "__qualname__", repr(function))
            logger.info("%s: attempt %d of %d failed: %r", name, attempt, max_attempts, error)
            if on_retry is not None:
                on_retry(error, attempt)

        @functools.wraps(function)
        async def in_loop(*args: P.args, **kwargs: P.kwargs) -> Any:
            for attempt, wait_s in waits():
                try:
                    return await cast(Any, function(*args, **kwargs))
                except exceptions as error:
                    note(error, attempt)
                await asyncio.sleep(wait_s)
            return await cast(Any, function(*args, **kwargs))

        @functools.wraps(function)
        def plain(*args: P.args, **kwargs: P.kwargs) -> R:
            for attempt, wait_s in waits():
                try:
                    return function(*args, **kwargs)
                except exceptions as error:
                    note(error, attempt)
                time.sleep(wait_s)
            return function(*args, **kwargs)

        return cast(Callable[P, R], in_loop) if inspect.iscoroutinefunction(function) else plain

    return decorate
