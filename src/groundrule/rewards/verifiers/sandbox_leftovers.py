"""What a run leaves behind: its folder, files elsewhere, processes of a wrapper."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

OPEN_TO_ALL = ("/tmp", "/var/tmp", "/dev/shm")


def remove_folder(folder: str) -> None:
    """Remove a folder, however deep it is and whatever modes the candidate left in it."""
    try:
        os.rmdir(folder)
    except OSError:
        for command in (["chmod", "-R", "u+rwX"], ["rm", "-rf"]):
            subprocess.run(
                [*command, "--", folder], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
            )


def remove_files_of(uid: int) -> None:
    """What a run with a uid of its own left where everyone may write."""
    for folder in filter(os.path.isdir, OPEN_TO_ALL):
        for entry in os.scandir(folder):
            with contextlib.suppress(FileNotFoundError):  # Others remove theirs meanwhile.
                if entry.stat(follow_symlinks=False).st_uid == uid:
                    remove_folder(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry)


def children_of(pid: int) -> list[int]:
    """The processes that this one started and has not seen end."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []
