"""The child's half of `_peers.Side`; imports nothing that a peer's environment lacks."""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any


def serve(load: Callable[[], Callable[[], dict[str, float]]]) -> None:
    """Load, then do the work once per line read and answer with its numbers, time and memory.

    Memory is of this process: `loaded_mb` what it held when it was ready, `peak_mb` the most that it ever held
    (`ru_maxrss`). Times are of the work alone: CPU seconds of all threads, of which `user_s` outside the kernel
    (which mostly hands out memory), and wall seconds. Whatever libraries print goes to standard error.
    """
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    work = load()
    answers.write(json.dumps({"loaded_mb": resident_mb(), "peak_mb": _peak_mb()}) + "\n")
    for _ in sys.stdin:
        cpu, user, wall = time.process_time(), os.times().user, time.perf_counter()
        found: dict[str, Any] = dict(work())
        found["cpu_s"] = time.process_time() - cpu
        found["user_s"] = os.times().user - user
        found["wall_s"] = time.perf_counter() - wall
        found["peak_mb"] = _peak_mb()
        answers.write(json.dumps(found) + "\n")


def timed(name: str, work: Callable[[], object]) -> dict[str, float]:
    """CPU and wall seconds of a part of the work, under names of its own."""
    cpu, wall = time.process_time(), time.perf_counter()
    work()
    return {f"{name}_cpu_s": time.process_time() - cpu, f"{name}_wall_s": time.perf_counter() - wall}


def resident_mb() -> float:
    """What this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
