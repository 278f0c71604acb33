"""A judge on the loopback interface that answers at once: OpenAI's chat completions, always with eight scores.

    python benchmarks/_stub_judge.py

Prints its port as the first line and ends when its standard input does. It reads no more of a request than its
length, so that both sides of a measurement wait for it equally little.
"""

from __future__ import annotations

import asyncio
import json
import socket
import sys

MEMBERS = 8
SCORES = [(number + 1) / (MEMBERS + 1) for number in range(MEMBERS)]
"""By id, "1" first: all different, so that a reward that is missing or taken twice shows."""


def completion() -> bytes:
    """One whole HTTP response without the line about the connection."""
    scores = [
        {"trajectory_id": str(number), "explanation": "It answers as the passage says.", "score": score}
        for number, score in enumerate(SCORES, start=1)
    ]
    message = {"role": "assistant", "content": json.dumps({"scores": scores})}
    body = {
        "id": "chatcmpl-stub",
        "object": "chat.completion",
        "created": 1,
        "model": "stub",
        "choices": [{"index": 0, "finish_reason": "stop", "message": message}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 240, "total_tokens": 1140},
    }
    return json.dumps(body).encode()


BODY = completion()
HEAD = f"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len(BODY)}\r\n".encode()


class Connection(asyncio.Protocol):
    """Answers each request as soon as its body is there."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        while (end := self.received.find(b"\r\n\r\n")) >= 0:
            head = self.received[:end].lower()
            length = int(head.partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
            if len(self.received) < end + 4 + length:
                return
            self.received = self.received[end + 4 + length :]
            closes = b"connection: close" in head
            self.transport.write(HEAD + b"connection: %b\r\n\r\n" % (b"close" if closes else b"keep-alive"))
            self.transport.write(BODY)
            if closes:
                self.transport.close()


async def main() -> None:
    loop = asyncio.get_running_loop()
    listener = socket.create_server(("127.0.0.1", 0), backlog=4096)
    await loop.create_server(Connection, sock=listener, backlog=4096)
    print(listener.getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
