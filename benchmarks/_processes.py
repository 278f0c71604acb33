"""Programs under the clock: what they take until they end, or until something is seen of them."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def to_the_end(command: Sequence[str], environment: Mapping[str, str] | None = None) -> dict[str, float]:
    """CPU seconds of a program and all its children, and wall seconds from start to end."""
    begun = time.perf_counter()
    child = subprocess.Popen(
        command, env={**os.environ, **(environment or {})}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert child.stderr
    said = child.stderr.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise RuntimeError(f"{' '.join(command)} ended with {child.returncode}: {said.decode()[-2000:]}")
    return {"cpu_s": usage.ru_utime + usage.ru_stime, "wall_s": time.perf_counter() - begun}


class Running:
    """A program that goes on until the block is left, where it is told to stop."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        self._command = command
        self._environment = {**os.environ, **(environment or {})}

    def __enter__(self) -> Self:
        self._begun = time.perf_counter()
        self.child = subprocess.Popen(
            self._command, env=self._environment, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.child.stdout
        self.child.stdout.close()
        if self.child.poll() is None:
            self.stop(60)

    def line(self) -> str:
        """The next line that it prints; waits for it."""
        assert self.child.stdout
        line = self.child.stdout.readline()
        if not line:
            raise RuntimeError(f"{' '.join(self._command)} ended with exit code {self.child.wait()}")
        return line.strip()

    def so_far(self) -> dict[str, float]:
        """CPU and wall seconds since its start."""
        fields = Path(f"/proc/{self.child.pid}/stat").read_text().rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        return {"cpu_s": ticks / _TICKS_PER_S, "wall_s": time.perf_counter() - self._begun}

    def resident_mb(self) -> float:
        """What it holds now."""
        pages = int(Path(f"/proc/{self.child.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def stop(self, timeout_s: float) -> int:
        """Its exit code after SIGTERM; killed when it takes longer."""
        self.child.terminate()
        try:
            return self.child.wait(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            self.child.kill()
            return self.child.wait()


def address_in(line: str) -> str:
    """The base URL in the line that `groundrule serve` prints when it is ready."""
    found = re.search(r"http://\S+", line)
    if found is None:
        raise RuntimeError(f"the server's first line names no address: {line!r}")
    return found[0]
