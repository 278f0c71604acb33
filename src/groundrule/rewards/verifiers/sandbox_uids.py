"""A uid for each run that root starts, so that no run can touch another and all of one run can be killed."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from groundrule.rewards.verifiers.sandbox_failure import SandboxFailure

FIRST, COUNT = 60600, 400
"""60600..60999: outside what Debian and systemd hand out, and inside what a rootless container maps."""

LOCKS = Path("/tmp/groundrule-sandbox-uids")


@dataclass(frozen=True)
class UidLease:
    """A uid (and gid of the same number) that no other run has until `release`."""

    uid: int
    _lock: int

    def release(self) -> None:
        os.close(self._lock)


def lease_uid() -> UidLease:
    """The first free uid, locked for all graders of this machine; the lock dies with its holder."""
    import fcntl  # Not there on every system that can import this package.

    _make_folder()
    for step in range(COUNT):
        uid = FIRST + (os.getpid() + step) % COUNT
        lock = os.open(LOCKS / str(uid), os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(lock)
            continue
        return UidLease(uid, lock)
    raise SandboxFailure(f"all {COUNT} uids from {FIRST} on are in use; run fewer verdicts at once")


def _make_folder() -> None:
    LOCKS.mkdir(mode=0o700, exist_ok=True)
    found = LOCKS.lstat()
    if found.st_uid != os.getuid() or found.st_mode & 0o777 != 0o700 or LOCKS.is_symlink():
        raise SandboxFailure(f"{LOCKS} is not root's own folder; remove it")
