"""Bytes in and out of a sandbox before a deadline, within a cap, and no file waited for alone."""

from __future__ import annotations

import os
import selectors
import time
from collections.abc import Callable
from typing import Literal

Cause = Literal["timeout", "output", "signal", "exit", "forgery"]


class Stopped(Exception):
    """The candidate's run is over before it answered. `cause` says why, the message says more."""

    def __init__(self, cause: Cause, message: str) -> None:
        super().__init__(message)
        self.cause: Cause = cause


class Channel:
    """The grader's ends of a sandbox's pipes. Raises `Stopped` past the deadline and past the cap."""

    def __init__(self, *, timeout_s: float, most_bytes: int) -> None:
        self.deadline = time.monotonic() + timeout_s
        self._most_bytes = most_bytes
        self._selector = selectors.DefaultSelector()
        self._unsent: dict[int, memoryview] = {}
        self._closing: dict[int, Callable[[], None]] = {}
        self._received: dict[int, bytearray] = {}
        self._open: set[int] = set()

    @property
    def left_s(self) -> float:
        """Seconds until the deadline; 0 after it."""
        return max(0.0, self.deadline - time.monotonic())

    def listen(self, file: int) -> None:
        """Keep what comes out of this file from now on."""
        self._received[file] = bytearray()
        self._open.add(file)
        self._watch(file, selectors.EVENT_READ)

    def send(self, file: int, content: bytes, *, then: Callable[[], None] | None = None) -> None:
        """Have this written while something is waited for, and `then` be called once it is, or cannot be."""
        if file not in self._unsent:
            self._watch(file, selectors.EVENT_WRITE)
        self._unsent[file] = memoryview(bytes(self._unsent.get(file, b"")) + content)
        if then is not None:
            self._closing[file] = then

    def line(self, file: int) -> bytes | None:
        """The next line; None when the file ends first."""
        received = self._received[file]
        self._pump(lambda: b"\n" in received or file not in self._open)
        line, end, rest = bytes(received).partition(b"\n")
        received[:] = rest
        return line if end else None

    def rest(self, *files: int) -> list[bytes]:
        """All that comes out of these files until they end."""
        self._pump(lambda: self._open.isdisjoint(files))
        return [bytes(self._received[file]) for file in files]

    def so_far(self, file: int) -> bytes:
        """What has come, and what lies ready."""
        while self._open and (ready := self._selector.select(0)):
            for key, event in ready:
                self._move(key.fd, event)
        return bytes(self._received[file])

    def close(self) -> None:
        self._selector.close()

    def _watch(self, file: int, event: int) -> None:
        os.set_blocking(file, False)
        self._selector.register(file, event)

    def _pump(self, is_done: Callable[[], bool]) -> None:
        while not is_done():
            if not self.left_s:
                raise Stopped("timeout", "it took longer than it may")
            for key, event in self._selector.select(self.left_s):
                self._move(key.fd, event)

    def _move(self, file: int, event: int) -> None:
        if event & selectors.EVENT_WRITE:
            self._write(file)
        else:
            self._read(file)

    def _read(self, file: int) -> None:
        piece = os.read(file, 1 << 16)
        if not piece:
            self._selector.unregister(file)
            self._open.discard(file)
        self._received[file] += piece
        if sum(map(len, self._received.values())) > self._most_bytes:
            raise Stopped("output", f"more than {self._most_bytes / (1 << 20):g} MiB")

    def _write(self, file: int) -> None:
        try:
            sent = os.write(file, self._unsent[file][: 1 << 16])
            self._unsent[file] = self._unsent[file][sent:]
        except BrokenPipeError:
            self._unsent[file] = memoryview(b"")
        if not self._unsent[file]:
            self._selector.unregister(file)
            del self._unsent[file]
            self._closing.pop(file, lambda: None)()
