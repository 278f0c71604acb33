"""Blocking code in a thread that asks the event loop it came from for what only coroutines give."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Bridge:
    """Called in the thread, it waits there for a coroutine that runs in the loop."""

    def __init__(self) -> None:
        """For the running loop."""
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._waiting: concurrent.futures.Future[Any] | None = None
        self._is_closed = False

    def __call__(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Its result. Raises `asyncio.CancelledError`, which no `except Exception` keeps, once the bridge is closed."""
        with self._lock:
            if self._is_closed:
                coroutine.close()
                raise asyncio.CancelledError
            future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
            self._waiting = future
        try:
            return future.result()
        except concurrent.futures.CancelledError as error:
            raise asyncio.CancelledError from error

    def close(self) -> None:
        """End what is waited for, and let nothing more through."""
        with self._lock:
            self._is_closed = True
            if self._waiting is not None:
                self._waiting.cancel()


async def bridged(function: Callable[[Bridge], T]) -> T:
    """Run blocking code in a thread of its own, with the context of this task.

    Cancelled, it ends what the thread waits for, and then waits until the thread has ended.
    """
    bridge = Bridge()
    work = asyncio.ensure_future(asyncio.to_thread(function, bridge))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        bridge.close()
        await asyncio.wait([work])
        raise
