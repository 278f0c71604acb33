"""The worker's side of `workers.py`: a process that does one job after the other until its input ends.

A job is one line of JSON, `{"target": "module:function", "args": [...], "limit_s": 5}`, and so is its answer. JSON
and not pickle: a worker reads text that a policy wrote, and nothing that it says may run in the trainer.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import signal
import sys
from typing import Any, TextIO

MEMORY_BYTES = 2 << 30
"""Address space of a worker; a job that needs more ends with an error, not with a machine that swaps."""

GRACE_S = 5


def serve() -> None:
    """Read jobs from the standard input until it ends; answers go out on what was the standard output."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # A library that prints cannot spoil the answers.
    _bound_memory()
    sys.setrecursionlimit(3000)
    for line in sys.stdin:
        job = json.loads(line)
        _alarm(job["limit_s"])
        _say(answers, _done(job))
        _alarm(0)


def _done(job: dict[str, Any]) -> dict[str, Any]:
    try:
        module, _, name = job["target"].partition(":")
        function = getattr(importlib.import_module(module), name) if name else _imported(module)
        return {"value": function(*job["args"])}
    except MemoryError:
        return {"error": "it needs more memory than a worker may use", "spent": True}
    except RecursionError:
        return {"error": "it is nested too deeply"}
    except Exception as error:  # The boundary of the process: every failure goes back as data.
        return {"error": f"{type(error).__name__}: {error}"[:500]}


def _imported(module: str) -> Any:
    importlib.import_module(module)
    return lambda: None


def _say(answers: TextIO, answer: dict[str, Any]) -> None:
    answers.write(json.dumps(answer) + "\n")
    answers.flush()


def _alarm(seconds: float) -> None:
    """End this process some time after the limit, should the parent no longer be there to do it."""
    if hasattr(signal, "SIGALRM"):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(math.ceil(seconds) + GRACE_S if seconds else 0)


def _bound_memory() -> None:
    try:
        import resource

        _, hard = resource.getrlimit(resource.RLIMIT_AS)
        most = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard)
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    except (ImportError, ValueError, OSError):
        return  # Not there on every system; the time limit still holds.


if __name__ == "__main__":
    serve()
