"""Awaitables that are run to their end: alone as in company."""

from __future__ import annotations

import asyncio
import contextlib
import warnings
from collections.abc import Awaitable
from typing import Any

import pytest

from groundrule._util.aio import settle

COMPANY = pytest.mark.parametrize("others", [0, 2], ids=["alone", "in company"])


async def gives(value: Any) -> Any:
    await asyncio.sleep(0)
    return value


async def raises(error: BaseException) -> Any:
    await asyncio.sleep(0)
    raise error


async def first_of(awaitable: Awaitable[Any], others: int, **more: Any) -> Any:
    return (await settle([awaitable, *(gives(1) for _ in range(others))], **more))[0]


@COMPANY
@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(3), asyncio.CancelledError("own")])
async def test_what_is_raised_stands_in_the_place_of_the_result(error, others):
    assert await first_of(raises(error), others) is error


@COMPANY
async def test_a_timeout_is_the_members_own(others):
    late = await first_of(asyncio.sleep(60), others, timeout_s=0.01)
    assert isinstance(late, TimeoutError) and str(late) == "no result after 0.01 s"
    assert await first_of(gives(5), others, timeout_s=5) == 5


@COMPANY
async def test_a_cancellation_goes_on_when_the_member_has_ended(others):
    ended = asyncio.Event()

    async def member() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0.01)
            ended.set()

    task = asyncio.create_task(first_of(member(), others))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


@COMPANY
async def test_a_member_cannot_keep_the_cancellation_to_itself(others):
    async def member() -> str:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)
        return "went on"

    task = asyncio.create_task(first_of(member(), others))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@COMPANY
async def test_an_outer_timeout_is_no_result(others):
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await first_of(asyncio.sleep(60), others)


@COMPANY
async def test_members_that_never_began_leave_no_warning(others):
    full = asyncio.Semaphore(0)
    task = asyncio.create_task(first_of(gives(1), others, limit=full))
    await asyncio.sleep(0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_task_alone_ends_with_its_group():
    given = asyncio.create_task(asyncio.sleep(60))
    task = asyncio.create_task(settle([given]))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert given.cancelled()


async def test_nothing_settles_to_nothing():
    assert await settle([]) == []
