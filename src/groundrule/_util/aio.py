"""Run many awaitables: bounded, timed, in order, and no failure touches a neighbour."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


async def settle(
    awaitables: Sequence[Awaitable[T]],
    *,
    limit: asyncio.Semaphore | None = None,
    timeout_s: float | None = None,
    on_each: Callable[[int, T | BaseException], None] | None = None,
) -> list[T | BaseException]:
    """Each result, or the exception in its place, in the order given.

    `SystemExit` and a cancellation raised inside one awaitable count as that one's failure. When
    this call itself is cancelled, or Ctrl-C is pressed, every member is cancelled and awaited
    before the cancellation goes on: nothing keeps running.
    """

    results: list[T | BaseException] = [asyncio.CancelledError("not started") for _ in awaitables]
    is_plain = limit is None and timeout_s is None

    async def member(index: int, awaitable: Awaitable[T]) -> None:
        try:
            results[index] = await (awaitable if is_plain else _bounded(awaitable, limit, timeout_s))
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            results[index] = error
        except (Exception, SystemExit) as error:
            results[index] = error
        if on_each is not None:
            on_each(index, results[index])

    loop = asyncio.get_running_loop()
    tasks = [loop.create_task(member(i, a)) for i, a in enumerate(awaitables)]
    all_well = False
    try:
        await _all(tasks)
        all_well = not any(isinstance(result, BaseException) for result in results)
    finally:
        if not all_well:
            await _end(tasks, awaitables)
    return results


def or_raise(results: Iterable[T | BaseException]) -> list[T]:
    """What `settle` gave; raises the first exception among it."""
    given = list(results)
    for result in given:
        if isinstance(result, BaseException):
            raise result
    return [result for result in given if not isinstance(result, BaseException)]


async def _end(tasks: Sequence[asyncio.Future[None]], awaitables: Sequence[Awaitable[Any]]) -> None:
    """Leave nothing running and nothing unawaited."""
    # A task given by the caller may still wait for its turn, with no member awaiting it yet.
    running = [*tasks, *(a for a in awaitables if isinstance(a, asyncio.Future))]
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)
    for awaitable in awaitables:
        _close_unstarted(awaitable)


async def _all(tasks: Sequence[asyncio.Future[None]]) -> None:
    if tasks:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in tasks:
            if task.done():
                task.result()


async def _bounded(awaitable: Awaitable[T], limit: asyncio.Semaphore | None, timeout_s: float | None) -> T:
    if limit is None:
        return await _timed(awaitable, timeout_s)
    async with limit:
        return await _timed(awaitable, timeout_s)


async def _timed(awaitable: Awaitable[T], timeout_s: float | None) -> T:
    if timeout_s is None:
        return await awaitable
    try:
        async with asyncio.timeout(timeout_s) as scope:
            return await awaitable
    except TimeoutError as error:
        if scope.expired():
            raise TimeoutError(f"no result after {timeout_s:g} s") from error
        raise


def _close_unstarted(awaitable: Awaitable[Any]) -> None:
    """A coroutine that never ran would warn at garbage collection."""
    if inspect.iscoroutine(awaitable) and inspect.getcoroutinestate(awaitable) == inspect.CORO_CREATED:
        awaitable.close()


_model_thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="groundrule-model")


async def on_model_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Run blocking work on a model, in the one thread of this process that is kept for it.

    Models are locked anyway, and every further thread would keep freed memory and a team of workers of its own:
    judging and training on many threads grew a process by gigabytes.
    """
    loop = asyncio.get_running_loop()
    return await loop.run_in_executor(_model_thread, contextvars.copy_context().run, function, *arguments)


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine from plain code, also where an event loop is already running (a notebook)."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(max_workers=1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
