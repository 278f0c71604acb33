"""Files that are either the old ones or the new ones, never something between."""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path


def write_atomic(path: Path, data: bytes | str) -> None:
    """Replace `path` by `data` in one move: a reader or a crash sees the old file or the new one."""
    raw = data.encode("utf-8") if isinstance(data, str) else data
    with replacing(path) as temporary:
        temporary.write_bytes(raw)


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary path beside `path` that becomes `path` when the block ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp")
    try:
        yield temporary
        sync(temporary)
        os.replace(temporary, path)
        sync(path.parent)
    finally:
        with contextlib.suppress(FileNotFoundError):
            temporary.unlink()


def sync(path: Path) -> None:
    """Ask the system to put a file, or a folder's list of names, on the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sha256_of(path: Path) -> str:
    """The hex digest of a file, read in pieces."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def cache_folder() -> Path:
    """Where downloads and judge replies are kept: `$XDG_CACHE_HOME/groundrule`, for its owner only."""
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(base) / "groundrule"
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return folder
