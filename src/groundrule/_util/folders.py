"""Folders that are complete or not there, and that notice when a file of theirs was cut or changed."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from groundrule._util.files import sha256_of, sync
from groundrule.errors import CheckpointError

MANIFEST = "manifest.json"


@contextlib.contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """An empty folder beside `folder` that takes its place in one step when the block ends without an error.

    What is written into it lies on the disk by then. A crash leaves it behind as `NAME.tmp`; the next one empties it.
    """
    scratch = folder.with_name(f"{folder.name}.tmp")
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    yield scratch
    for path in scratch.iterdir():
        sync(path)
    if folder.exists():
        shutil.rmtree(folder)
    os.replace(scratch, folder)
    sync(folder.parent)


def write_manifest(folder: Path, names: Iterable[str], **more: Any) -> None:
    """Note the sha256 of these files, and what else is to be said of the folder."""
    hashes = {name: sha256_of(folder / name) for name in names}
    (folder / MANIFEST).write_text(json.dumps({**more, "files": hashes}, indent=2) + "\n")


def check_manifest(
    folder: Path, names: Iterable[str], *, kind: str, remedy: str = "", manifest: str = "its manifest"
) -> None:
    """Raise `CheckpointError` unless these files, and all others of the manifest, are there with their hashes.

    `kind` is what the folder should be, `remedy` ends the message, `manifest` is what it calls the file.
    """
    try:
        noted = json.loads((folder / MANIFEST).read_text())["files"]
        digests = {name: noted[name] for name in (*names, *noted)}
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise CheckpointError(
            f"{folder} has no readable {MANIFEST} ({type(error).__name__}: {error}); it is cut, or no {kind}"
        ) from error
    for name, digest in digests.items():
        path = folder / name
        if not path.exists():
            raise CheckpointError(f"{path} is missing; the {kind} is not complete{remedy}")
        if sha256_of(path) != digest:
            raise CheckpointError(
                f"{path} is not what {manifest} says: cut or changed after it was written{remedy}"
            )
