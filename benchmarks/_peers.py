"""Peers to measure against: environments of their own, and children that do one piece of work per line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from groundrule._util.files import cache_folder

HERE = Path(__file__).parent
CONSTRAINTS = HERE.parent / "constraints.txt"

TRL = "trl-1.16.0"
ART = "openpipe-art-0.5.18"
PEERS: dict[str, list[str]] = {
    TRL: ["torch==2.13.0", "trl==1.16.0", "peft"],
    ART: ["openpipe-art==0.5.18"],
}
"""Name and version -> what is installed for it. torch is pinned: an open range may bring gigabytes of CUDA."""

QUIET = {"LITELLM_LOCAL_MODEL_COST_MAP": "True"}
"""For ART's side: litellm fetches a list of prices from the network when it is imported, unless told not to."""


def peer_python(name: str, folder: Path | None = None) -> Path:
    """The interpreter of a peer's environment, which is made (in some minutes) when it is not there.

    `TORCH_INDEX`, if set, is where torch is taken from, as in the Makefile.
    """
    folder = folder or cache_folder() / "peers" / name
    python, done = folder / "bin" / "python", folder / "installed"
    if not done.exists():
        print(f"installing {name} into {folder}: some minutes", file=sys.stderr)
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--constraint", str(CONSTRAINTS)]
        index = os.environ.get("TORCH_INDEX")
        for torch in [wanted for wanted in PEERS[name] if wanted.startswith("torch==")]:
            subprocess.run([*pip, *(["--index-url", index] if index else []), torch], check=True)
        subprocess.run([*pip, *PEERS[name]], check=True)
        done.touch()
    return python


class Side:
    """A child that prints one JSON line when it is ready and one for every line it reads."""

    def __init__(self, command: Sequence[str | Path], environment: Mapping[str, str] | None = None) -> None:
        self.command = [str(part) for part in command]
        path = os.pathsep.join(filter(None, (str(HERE), os.environ.get("PYTHONPATH"))))
        self.environment = {**os.environ, "PYTHONPATH": path, **(environment or {})}

    def __enter__(self) -> Self:
        self.child = subprocess.Popen(
            self.command, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.ready = self._answer()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.child.stdin
        self.child.stdin.close()
        self.child.wait(timeout=60)

    def ask(self) -> dict[str, Any]:
        """Have it work once."""
        assert self.child.stdin
        self.child.stdin.write("go\n")
        self.child.stdin.flush()
        return self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self.child.stdout
        line = self.child.stdout.readline()
        if not line:
            code = self.child.wait()
            killed = "; it was killed, most likely for want of memory" if code == -9 else ""
            raise RuntimeError(f"{' '.join(self.command)} ended with exit code {code}{killed}")
        answer: dict[str, Any] = json.loads(line)
        return answer


def in_turn(ours: Side, theirs: Side, runs: int) -> dict[str, list[dict[str, Any]]]:
    """Start ours, then theirs, and let them work alternately; every answer of each, the first ones included."""
    found: dict[str, list[dict[str, Any]]] = {"ours": [], "theirs": []}
    with ours, theirs:
        for _ in range(runs):
            for name, side in (("ours", ours), ("theirs", theirs)):
                found[name].append(side.ask())
                print(f"{name}: {found[name][-1]['cpu_s']:.2f} CPU s", file=sys.stderr)
    return found
