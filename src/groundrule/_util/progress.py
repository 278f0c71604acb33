"""Progress of long work: a bar on a terminal, an occasional plain line anywhere else.

Everything goes to standard error, so that what a program prints stays clean.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, TextIO, TypeVar

from groundrule._util.aio import or_raise, settle

if TYPE_CHECKING:
    from rich.progress import Progress

SECONDS_BETWEEN_LINES = 5.0

T = TypeVar("T")


class Bar(Protocol):
    """What long work tells about itself."""

    def advance(self, count: int = 1, note: object = "") -> None:
        """`count` more units are done; `note` is shown beside the count, as the text that it has by then."""


@contextlib.contextmanager
def progress_bar(
    desc: str | None,
    total: int,
    *,
    stream: TextIO | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> Iterator[Bar]:
    """A bar for the work inside the block; None or "" as `desc` shows nothing."""
    out = stream if stream is not None else sys.stderr
    if not desc or total <= 0:
        yield SilentBar()
    elif _draws_bars(out):
        with _screen.shared(out) as screen:
            yield TerminalBar(screen, desc, total)
    else:
        lines = PlainLines(desc, total, out, clock)
        try:
            yield lines
        finally:
            lines.close()


async def settle_all(awaitables: Sequence[Awaitable[T]], *, desc: str, at_once: int) -> list[T]:
    """Each result, in the order given, under a bar. The first failure is raised when all are done."""
    with progress_bar(desc, len(awaitables)) as bar:
        results = await settle(awaitables, limit=asyncio.Semaphore(at_once), on_each=lambda *_: bar.advance())
    return or_raise(results)


def _draws_bars(out: TextIO) -> bool:
    if not out.isatty():
        return False
    from rich.console import Console

    return not Console(file=out).is_dumb_terminal


class SilentBar:
    """Shows nothing."""

    def advance(self, count: int = 1, note: object = "") -> None: ...


class PlainLines:
    """One line every few seconds at most, and one at the end."""

    def __init__(self, desc: str, total: int, out: TextIO, clock: Callable[[], float]) -> None:
        self._desc, self._total, self._out, self._clock = desc, total, out, clock
        self._done = 0
        self._note: object = ""
        self._printed = ""
        self._last = clock()

    def advance(self, count: int = 1, note: object = "") -> None:
        self._done += count
        self._note = note
        if self._clock() - self._last >= SECONDS_BETWEEN_LINES:
            self._print()

    def close(self) -> None:
        if self._done:
            self._print()

    def _print(self) -> None:
        note = str(self._note)
        line = f"{self._desc}: {self._done}/{self._total}" + (f" ({note})" if note else "")
        if line != self._printed:
            print(line, file=self._out, flush=True)
        self._printed = line
        self._last = self._clock()


class TerminalBar:
    """One row of the shared screen."""

    def __init__(self, screen: Progress, desc: str, total: int) -> None:
        self._screen = screen
        self._task = screen.add_task(desc, total=total, note="")

    def advance(self, count: int = 1, note: object = "") -> None:
        self._screen.update(self._task, advance=count, note=str(note))


class _Screen:
    """The one live display of the process: bars that run at the same time are its rows."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users = 0
        self._live: Progress | None = None

    @contextlib.contextmanager
    def shared(self, out: TextIO) -> Iterator[Progress]:
        with self._lock:
            if self._live is None:
                self._live = _new_display(out)
                self._live.start()
            live = self._live
            self._users += 1
        try:
            yield live
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    live.stop()
                    self._live = None


_screen = _Screen()


def _new_display(out: TextIO) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", markup=False, style="dim"),
        console=Console(file=out),
    )
