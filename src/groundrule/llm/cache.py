"""ReplyCache: answers of judges on disk, shared by threads, processes and runs.

SQLite in write-ahead mode, readable by its owner only. Values are JSON; whoever puts a value has checked
it first, so errors and unusable replies never get in. A damaged file is set aside and a new one begun.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import hashlib
import json
import logging
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from groundrule._util.files import cache_folder
from groundrule.errors import ConfigError

logger = logging.getLogger(__name__)

SCHEMA_VERSION = 1
"""Part of every key: entries written under another version are never read."""

_FILE = "replies.sqlite"
_BUSY_S = 30.0


_json = json.JSONEncoder(separators=(",", ":"))
_sorted_json = json.JSONEncoder(separators=(",", ":"), sort_keys=True)


def cache_key(**parts: Any) -> str:
    """The key for whatever determines an answer. A part that is absent differs from any value."""
    text = _sorted_json.encode({"schema": SCHEMA_VERSION, **parts})
    return hashlib.sha256(text.encode("ascii")).hexdigest()


class ReplyCache:
    """Keys and JSON values in one file, by default `replies.sqlite` in the user's cache folder."""

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = cache_folder() / _FILE if path is None else Path(path)
        self._local = threading.local()

    def __reduce__(self) -> tuple[Any, ...]:
        return (ReplyCache, (self.path,))

    def get(self, key: str) -> Any | None:
        """The value, or None."""
        with self._connection() as connection:
            row = connection.execute("SELECT value FROM replies WHERE key = ?", (key,)).fetchone()
            return None if row is None else json.loads(row[0])
        return None

    def put(self, key: str, value: Any) -> None:
        """Keep a value; an older one under the same key is replaced."""
        text = _json.encode(value)
        with self._connection() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO replies (key, value, at) VALUES (?, ?, ?)",
                (key, text, time.time()),
            )

    @contextlib.asynccontextmanager
    async def flight(self, key: str) -> AsyncIterator[None]:
        """Hold this while making the value for `key`: others in this process wait, then find it."""
        flight = (str(self.path), key)
        while True:
            with _flights_lock:
                ahead = _flights.get(flight)
                if ahead is None:
                    mine = _flights[flight] = concurrent.futures.Future()
                    break
            await asyncio.shield(asyncio.wrap_future(ahead))
        try:
            yield
        finally:
            with _flights_lock:
                del _flights[flight]
            mine.set_result(None)

    def close(self) -> None:
        """Close this thread's connection; the next use opens another."""
        connection = getattr(self._local, "connection", None)
        if connection is not None and self._local.pid == os.getpid():
            connection.close()
        self._local.connection = None

    @contextlib.contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """This thread's connection. Damage found while using it is mended, and the use ends as a miss."""
        try:
            yield self._open()
        except sqlite3.OperationalError as error:
            logger.warning("reply cache %s: %s; going on without it", self.path, error)
        except sqlite3.DatabaseError as error:
            self._set_aside(error)

    def _open(self) -> sqlite3.Connection:
        local = self._local
        if getattr(local, "connection", None) is not None:
            if local.pid == os.getpid():
                return local.connection  # type: ignore[no-any-return]
            # Made before a fork: closing it here could end the parent's locks.
            _inherited.append(local.connection)
            local.connection = None
        try:
            connection = self._connect()
        except sqlite3.OperationalError as error:
            raise ConfigError(
                f"the reply cache {self.path} cannot be opened ({error}); give another path, "
                "or turn it off with cache=False"
            ) from error
        except sqlite3.DatabaseError as error:
            self._set_aside(error)
            connection = self._connect()
        local.connection, local.pid, local.inode = connection, os.getpid(), _inode(self.path)
        return connection

    def _connect(self) -> sqlite3.Connection:
        """Open and prepare the file. Several processes may do so at once, hence the patience."""
        self._local.inode = _create_private(self.path)
        ends = time.monotonic() + _BUSY_S
        while True:
            connection = sqlite3.connect(self.path, timeout=_BUSY_S, isolation_level=None)
            try:
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute("PRAGMA synchronous=NORMAL")
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, value TEXT NOT NULL, at REAL)"
                )
                return connection
            except sqlite3.OperationalError as error:
                connection.close()
                # Switching to write-ahead mode does not wait for others by itself.
                if ("lock" not in str(error) and "busy" not in str(error)) or time.monotonic() > ends:
                    raise
                time.sleep(0.02)
            except sqlite3.DatabaseError:
                connection.close()
                raise

    def _set_aside(self, error: sqlite3.DatabaseError) -> None:
        """Move a damaged file out of the way, unless another process has done so already."""
        damaged_inode = getattr(self._local, "inode", None)
        self.close()
        if damaged_inode != _inode(self.path):
            return
        aside = self.path.with_name(f"{self.path.name}.damaged-{secrets.token_hex(4)}")
        with contextlib.suppress(FileNotFoundError):
            os.replace(self.path, aside)
            for suffix in ("-wal", "-shm"):
                with contextlib.suppress(FileNotFoundError):
                    self.path.with_name(self.path.name + suffix).unlink()
            logger.warning(
                "reply cache %s is damaged (%s); moved to %s and begun anew", self.path, error, aside.name
            )


def default_cache() -> ReplyCache:
    """The cache in the user's cache folder, one object per process and folder."""
    folder = cache_folder()
    return _defaults.get(folder) or _defaults.setdefault(folder, ReplyCache(folder / _FILE))


_defaults: dict[Path, ReplyCache] = {}

_flights: dict[tuple[str, str], concurrent.futures.Future[None]] = {}
"""Values being made right now in this process, by file and key."""
_flights_lock = threading.Lock()


def _begin_child() -> None:
    """A forked child waits for nothing that only its parent can finish."""
    global _flights_lock
    _flights_lock = threading.Lock()
    _flights.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_child)

_inherited: list[sqlite3.Connection] = []
"""Connections from before a fork, kept so that they are never closed here."""


def _create_private(path: Path) -> int | None:
    """Make sure the file exists and only its owner may read it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise sqlite3.OperationalError(str(error)) from error
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError:
        pass
    except OSError as error:
        raise sqlite3.OperationalError(str(error)) from error
    return _inode(path)


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None
