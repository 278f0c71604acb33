"""A small HTTP client that can also misbehave: send anything, and leave at any moment."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from typing import Any


class Left(Exception):
    """The client closed its connection before the answer was complete, as it was told to."""


@dataclass
class Reply:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def is_stream(self) -> bool:
        return self.headers.get("content-type", "").startswith("text/event-stream")

    def answers(self) -> list[Answer]:
        """The choices, by index, whether they came whole or in pieces."""
        return _streamed(self.events()) if self.is_stream else _whole(json.loads(self.body))

    def events(self) -> list[Any]:
        """What a stream carried; `ValueError` unless it ends as streams must."""
        lines = [line[6:] for line in self.body.split(b"\n") if line.startswith(b"data: ")]
        if not lines or lines[-1] != b"[DONE]":
            raise ValueError("the stream does not end with [DONE]")
        return [json.loads(line) for line in lines[:-1]]


@dataclass
class Answer:
    """One choice."""

    tokens: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    text: str = ""
    calls: list[Any] = field(default_factory=list)
    finish: str | None = None


def _whole(completion: Any) -> list[Answer]:
    found = [_answer(choice, choice["message"]) for choice in completion["choices"]]
    counted = completion["usage"]["completion_tokens"]
    if counted != sum(len(answer.tokens) for answer in found):
        raise ValueError(f"usage says {counted} tokens, the choices have others")
    return found


def _answer(choice: Any, message: Any) -> Answer:
    logprobs = [entry["logprob"] for entry in (choice.get("logprobs") or {}).get("content") or []]
    calls = list(message.get("tool_calls") or [])
    tokens = list(choice.get("token_ids") or [])
    return Answer(tokens, logprobs, message.get("content") or "", calls, choice["finish_reason"])


def _streamed(events: list[Any]) -> list[Answer]:
    found: dict[int, Answer] = {}
    for event in events:
        if "error" in event:
            raise ValueError(f"the stream carries an error: {event['error']}")
        for choice in event["choices"]:
            kept, piece = found.setdefault(choice["index"], Answer()), _answer(choice, choice["delta"])
            kept.tokens += piece.tokens
            kept.logprobs += piece.logprobs
            kept.text += piece.text
            kept.calls += piece.calls
            kept.finish = piece.finish or kept.finish
    return [found[index] for index in sorted(found)]


@dataclass(frozen=True)
class Client:
    """Talks to one server; a connection for each request."""

    host: str
    port: int
    key: str

    async def chat(self, body: dict[str, Any], *, leave_after_s: float | None = None) -> Reply:
        """Ask for a completion."""
        return await self.send(json.dumps(body).encode(), leave_after_s=leave_after_s)

    async def send(
        self,
        body: bytes = b"",
        *,
        route: str = "/v1/chat/completions",
        method: str = "POST",
        key: str | None = None,
        announced: int | None = None,
        leave_after_s: float | None = None,
    ) -> Reply:
        """Send these bytes, saying that there are `announced` of them, and read to the end of the answer."""
        head = (
            f"{method} {route} HTTP/1.1\r\nhost: {self.host}:{self.port}\r\nconnection: close\r\n"
            f"authorization: Bearer {key or self.key}\r\ncontent-type: application/json\r\n"
            f"content-length: {len(body) if announced is None else announced}\r\n\r\n"
        )
        reader, writer = await asyncio.open_connection(self.host, self.port)
        try:
            with contextlib.suppress(
                ConnectionError
            ):  # Refused before all of it was sent: the answer is there.
                writer.write(head.encode() + body)
                await writer.drain()
            async with asyncio.timeout(leave_after_s):
                return _parsed(await reader.read(-1))
        except TimeoutError as error:
            raise Left from error
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


def _parsed(raw: bytes) -> Reply:
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    if headers.get("transfer-encoding") == "chunked":
        body = _joined(body)
    return Reply(int(first.split()[1]), headers, body)


def _joined(chunked: bytes) -> bytes:
    pieces, rest = [], chunked
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        pieces.append(rest[: int(size, 16)])
        rest = rest[int(size, 16) + 2 :]
    return b"".join(pieces)
