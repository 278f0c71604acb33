"""Processes that can be killed, for verifier work that may never end.

sympy, a regular expression or a schema can run for hours on a text that a policy wrote, and Python cannot stop a
thread. So such work runs in a small pool of processes: a job that is over its limit costs its worker, which is
killed and replaced. The limit is wall-clock time and holds in threads and under an event loop too, because no
signal is used in this process. A worker is a fresh interpreter, not a fork, and does not run the caller's main
module again, so programs without an `if __name__ == "__main__"` guard work.
"""

from __future__ import annotations

import atexit
import json
import os
import selectors
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

START_S = 120.0
"""A worker has so long to start and import; on a busy machine that takes seconds. It does not count as work."""

_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from groundrule.rewards.verifiers.worker import serve; serve()"
)
_PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "LANG")
"""The environment of a worker. Keys of judges are not in it."""


class WorkerError(Exception):
    """The job gave no result; the message says why."""


class WorkerTimeout(WorkerError):
    """The job was over its time limit and was killed."""


class Workers:
    """A pool of at most `size` workers, started when needed and shared safely by threads.

    A worker is replaced after `jobs_each` jobs, so that what libraries cache does not pile up.
    """

    def __init__(self, size: int | None = None, *, jobs_each: int = 500) -> None:
        self._size = size or max(1, min(4, os.cpu_count() or 1))
        self._jobs_each = jobs_each
        self.forget()

    def forget(self) -> None:
        """Start anew without touching the workers: after a fork they belong to the parent."""
        self._free = threading.BoundedSemaphore(self._size)
        self._lock = threading.Lock()
        self._idle: list[_Worker] = []
        self._busy: set[_Worker] = set()

    def call(self, target: str, *args: Any, timeout_s: float) -> Any:
        """What `target`, a "module:function", makes of these JSON values, within `timeout_s` seconds.

        Waiting for a free worker and importing the module do not count. Raises `WorkerTimeout` and `WorkerError`.
        """
        with self._free, self._borrowed() as worker:
            worker.import_module(target.partition(":")[0])
            return worker.ask(target, args, timeout_s)

    @contextmanager
    def _borrowed(self) -> Iterator[_Worker]:
        with self._lock:
            worker = self._idle.pop() if self._idle else _Worker()
            self._busy.add(worker)
        try:
            yield worker
        finally:
            with self._lock:
                self._busy.discard(worker)
                keep = worker.alive and worker.jobs < self._jobs_each
                if keep:
                    self._idle.append(worker)
            if not keep:
                worker.close()

    def close(self) -> None:
        """End all workers, also those at work, whose callers get a `WorkerError`. New ones start when needed."""
        with self._lock:
            idle, self._idle = self._idle, []
            for worker in self._busy:
                worker.kill()
        for worker in idle:
            worker.close()


class _Worker:
    """One process. `alive` is False once it was killed or died."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={name: os.environ[name] for name in _PASSED_ON if name in os.environ},
            start_new_session=True,  # Ctrl-C ends the program, which ends its workers.
            bufsize=0,
        )
        self.alive = True
        self.jobs = 0
        self._imported: set[str] = set()

    def import_module(self, module: str) -> None:
        """Import it, once, within the time for starting."""
        if module not in self._imported:
            self.ask(module, (), START_S)
            self._imported.add(module)

    def ask(self, target: str, args: tuple[Any, ...], timeout_s: float) -> Any:
        """One job and its answer."""
        self.jobs += 1
        job = json.dumps({"target": target, "args": list(args), "limit_s": timeout_s}) + "\n"
        try:
            answer = self._exchange(job.encode("utf-8"), timeout_s)
        except OSError:
            answer = None
        except BaseException:  # Ctrl-C too: an answer that nobody waits for must not reach the next job.
            self.kill()
            raise
        if answer is None or answer.get("spent"):
            self.kill()
        if answer is None:
            raise WorkerError("the worker died")
        if "error" in answer:
            raise WorkerError(str(answer["error"]))
        return answer["value"]

    def _exchange(self, job: bytes, timeout_s: float) -> dict[str, Any] | None:
        """The answer; None when the process ended without one."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        deadline = time.monotonic() + timeout_s
        rest = memoryview(job)
        while rest:
            rest = rest[stdin.write(rest) :]
        said = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(stdout, selectors.EVENT_READ)
            while not said.endswith(b"\n"):
                left = deadline - time.monotonic()
                if left <= 0 or not selector.select(left):
                    raise WorkerTimeout(f"no result within {timeout_s:g} s")
                piece = os.read(stdout.fileno(), 1 << 16)
                if not piece:
                    return None
                said += piece
        answer: dict[str, Any] = json.loads(said)
        return answer

    def kill(self) -> None:
        """End the process, whatever it does."""
        self.alive = False
        self._process.kill()

    def close(self) -> None:
        """End the process and give back its pipes."""
        self.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()


shared = Workers()
"""The pool that all verifiers use."""

atexit.register(shared.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=shared.forget)
