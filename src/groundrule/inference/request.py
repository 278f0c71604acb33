"""An HTTP request from outside: whose it is, how much of it is read, and whether its client still waits."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import Receive, Scope, Send

from groundrule.inference.errors import RequestError

T = TypeVar("T")

SLOT_HEADER = "x-groundrule-slot"
MAX_BODY_BYTES = 8 << 20
_LINGER_S = 2.0
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


async def read_body(request: Request) -> bytes:
    """The body; refused as soon as more has come, or is announced, than is read."""
    announced = request.headers.get("content-length", "0")
    if announced.isdecimal() and int(announced) > MAX_BODY_BYTES:
        raise BodyTooLargeError()
    pieces, size = [], 0
    try:
        async for piece in request.stream():
            pieces.append(piece)
            size += len(piece)
            if size > MAX_BODY_BYTES:
                raise BodyTooLargeError()
    except ClientDisconnect as error:
        raise RequestError("the body is not complete") from error
    return b"".join(pieces)


class BodyTooLargeError(RequestError):
    """More was sent than is read."""

    def __init__(self) -> None:
        super().__init__(
            f"the body has more than {MAX_BODY_BYTES} bytes, which is all that is read; shorten the messages",
            status=413,
            headers={"connection": "close"},
        )


class EarlyRefusal(JSONResponse):
    """An answer given while the body still comes in.

    For a moment the rest is taken and dropped: closing at once would reset the connection under a client that is still
    writing, which then never sees the answer.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await send({"type": "http.response.body", "body": bytes(self.body), "more_body": True})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_S):
                while (await receive()).get("more_body"):
                    pass
        await send({"type": "http.response.body", "body": b""})


def key_and_slot(request: Request, api_key: str | None) -> tuple[str, int | None]:
    """The key that was sent, and the slot of a lockstep gather.

    The slot stands in a header, or behind the key: agents with a client of their own pass on what their policy
    gave them.
    """
    given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
    slot = request.headers.get(SLOT_HEADER, "")
    if given != api_key:
        key, _, behind = given.rpartition(".")
        given, slot = (key, slot or behind) if behind.isdecimal() else (given, slot)
    return given, int(slot) if slot.isdecimal() else None


def check_host(request: Request) -> None:
    """Refuse a request that names another host: a web page that was pointed here may read what is open to all."""
    host = request.url.hostname
    if host not in _LOOPBACK:
        message = f"the host {host!r} is not served here without a key; ask for 127.0.0.1, or set a key"
        raise RequestError(message, status=403, code="host_not_allowed")


async def unless_gone(request: Request, answer: asyncio.Future[T]) -> T | None:
    """The answer; None when the client closed the connection before it was there. The body must have been read."""

    async def gone() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass

    leaving = asyncio.ensure_future(gone())
    both: list[asyncio.Future[Any]] = [answer, leaving]
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        return answer.result() if answer.done() else None
    finally:
        leaving.cancel()
        answer.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await leaving
