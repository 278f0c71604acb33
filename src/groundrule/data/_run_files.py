"""What stands in a run folder, and cutting it back to its last complete step."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from groundrule._util.files import write_atomic
from groundrule.errors import RunError

logger = logging.getLogger(__name__)

VERSION = 1
"""Of the folder's layout."""

_NUMBERED = re.compile(r"step-(\d{6,})((\.[\w-]+)?\.jsonl?)?")


def step_name(step: int) -> str:
    """`step-000012`."""
    return f"step-{step:06d}"


def step_of(path: Path) -> int | None:
    """The step that a file or folder belongs to, read as a number; None for anything else."""
    match = _NUMBERED.fullmatch(path.name)
    if match is None or not path.name.startswith(step_name(int(match[1]))):
        return None
    return int(match[1])


def numbered(folder: Path) -> list[tuple[int, Path]]:
    """(step, path) of everything in the folder that belongs to a step, in the order of the steps."""
    found = [(step_of(path), path) for path in folder.iterdir()] if folder.is_dir() else []
    return sorted((step, path) for step, path in found if step is not None)


def remove_folder(folder: Path) -> None:
    """Take a folder away; a crash in the middle leaves a name that counts as no checkpoint."""
    doomed = folder.with_name(folder.name + ".tmp")
    if doomed.exists():
        shutil.rmtree(doomed)
    folder.rename(doomed)
    shutil.rmtree(doomed)


def cut_back(folder: Path, step: int) -> None:
    """Remove everything that belongs to steps after `step`, and what was half written.

    What belongs to `step` and before is not touched.
    """
    removed = [*_remove_half_written(folder), *_remove_later(folder, step)]
    for name in ("metrics.jsonl", "costs.jsonl"):
        if count := cut_lines(folder / name, step):
            removed.append(f"{count} lines of {name}")
    if removed:
        logger.warning("%s: back at step %d; removed %s", folder, step, ", ".join(removed))


def _remove_half_written(folder: Path) -> Iterator[str]:
    for place in (folder, folder / "trajectories", folder / "evaluations"):
        for path in place.glob(".*.tmp"):
            if path.name.startswith(".report.html."):
                continue  # A report can be written while another process holds the run.
            path.unlink()
            yield path.relative_to(folder).as_posix()
    for path in (folder / "checkpoints").glob("*.tmp"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
        yield path.relative_to(folder).as_posix()


def _remove_later(folder: Path, step: int) -> Iterator[str]:
    for place in ("trajectories", "evaluations", "checkpoints"):
        for number, path in numbered(folder / place):
            if number > step:
                remove_folder(path) if path.is_dir() else path.unlink()
                yield path.relative_to(folder).as_posix()


def cut_lines(path: Path, step: int) -> int:
    """Take out lines of later steps and a cut last line; the others keep their bytes. How many went."""
    if not path.is_file():
        return 0
    *whole, last = path.read_bytes().split(b"\n")
    lines = [line + b"\n" for line in whole] + ([last] if last else [])
    kept = [line for line in lines if not _is_later_or_cut(line, step)]
    if len(kept) < len(lines):
        write_atomic(path, b"".join(kept))
    return len(lines) - len(kept)


def _is_later_or_cut(line: bytes, step: int) -> bool:
    number = _step_in(line)
    if number is None and not line.endswith(b"\n"):
        return not _is_json(line)
    return number is not None and number > step


def _step_in(line: bytes) -> int | None:
    record = json.loads(line) if _is_json(line) else None
    number = record.get("step") if isinstance(record, dict) else None
    return number if isinstance(number, int) else None


def _is_json(line: bytes) -> bool:
    try:
        json.loads(line)
    except ValueError:
        return False
    return True


def locked(folder: Path) -> int:
    """An open handle that keeps other processes out until it is closed, or its process ends."""
    import fcntl

    path = folder / ".lock"
    handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        owner = os.read(handle, 40).decode("ascii", "replace").strip() or "unknown"
        os.close(handle)
        raise RunError(
            f"{folder} is in use by process {owner}; wait until that has ended, "
            "or look at the run with Run.open(folder, read_only=True)"
        ) from None
    os.ftruncate(handle, 0)
    os.write(handle, f"{os.getpid()}\n".encode())
    return handle


def read_state(folder: Path) -> tuple[int, dict[str, Any]]:
    path = folder / "state.json"
    record = read_object(path)
    step, state = record.get("step"), record.get("state", {})
    if record.get("version") != VERSION:
        raise RunError(f"{path} has version {record.get('version')!r}; this program reads version {VERSION}")
    if type(step) is not int or step < 0 or not isinstance(state, dict):
        raise RunError(f"{path} names no complete step (step is {step!r}); {_remedy(path)}")
    return step, state


def read_object(path: Path) -> dict[str, Any]:
    try:
        record = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise RunError(f"{path} cannot be read: {error.strerror}; restore it from a copy") from error
    except ValueError as error:
        raise RunError(f"{path} is damaged ({error}); {_remedy(path)}") from error
    if not isinstance(record, dict):
        raise RunError(f"{path} holds {type(record).__name__} and not an object; {_remedy(path)}")
    return record


def _remedy(path: Path) -> str:
    if path.name != "state.json":
        return "restore it from a copy"
    step = _newest_whole_step(path.parent)
    state = f'{{"version": {VERSION}, "step": {step}, "state": {{}}}}'
    return f"restore it from a copy, or write {state} into it to go on from there"


def _newest_whole_step(folder: Path) -> int:
    """The last step with a metrics line and, where the run has checkpoints, a checkpoint."""
    metrics = folder / "metrics.jsonl"
    lines = metrics.read_bytes().split(b"\n") if metrics.exists() else []
    steps = {step for step in map(_step_in, lines) if step is not None}
    if checkpoints := {step for step, _ in numbered(folder / "checkpoints")}:
        steps &= checkpoints
    return max(steps, default=0)
