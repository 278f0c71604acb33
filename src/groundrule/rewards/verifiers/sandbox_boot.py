"""The first lines of a sandboxed interpreter: make modules of texts that the grader sends, and run them.

The text of this file is given to `python -c`, so nothing of this package has to be readable in the sandbox. First
comes what confines the process (`sandbox_child.py`), then, after the proof, what the process is for.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    sys.path.pop(0)  # The current folder.

import json
import os
import types


def main() -> None:
    """Confine, then run: what is loaded first must return in the confined process only."""
    read, write = int(sys.argv[1]), int(sys.argv[2])
    os.set_inheritable(read, False)
    os.set_inheritable(write, False)
    confinement = json.loads(_first_line(read))
    _load(confinement["sources"]).run(confinement["settings"], read, write)
    if hasattr(sys, "set_int_max_str_digits"):
        sys.set_int_max_str_digits(0)
    file = os.fdopen(read, "rb")
    _load(json.loads(file.readline())).run(file, write)


def _first_line(read: int) -> bytes:
    """The grader sends nothing after it until it has read the proof, so no byte of what follows is taken."""
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(read, 1 << 20) or b"\n"
    return line


def _load(sources: dict[str, str]) -> types.ModuleType:
    """Modules under their full names; each may import those after it. Gives the first."""
    for name, text in reversed(sources.items()):
        module = sys.modules[name] = types.ModuleType(name)
        exec(compile(text, name, "exec"), module.__dict__)
    return module


if __name__ == "__main__":
    main()
