"""What Linux is asked for: namespaces, a root of its own, no privileges. Any refusal is an `OSError`.

The text of this file is sent into sandboxes: standard library only. `ctypes`, because Python has names for these
calls only from 3.12 on, and for mounts not at all.
"""

from __future__ import annotations

import ctypes
import os
import signal

TYPE_CHECKING = False  # Without importing typing, which costs a sandbox a tenth of its start.
if TYPE_CHECKING:
    from typing import Any

NEW_MOUNTS, NEW_NAME, NEW_IPC, NEW_USER = 0x20000, 0x4000000, 0x8000000, 0x10000000
NEW_PIDS, NEW_NETWORK = 0x20000000, 0x40000000
READ_ONLY, NO_SETUID, NO_DEVICES, NO_EXEC, BIND, RECURSIVE, PRIVATE = 1, 2, 4, 8, 0x1000, 0x4000, 0x40000
DETACH, AT_RECURSIVE = 2, 0x8000
SET_DEATH_SIGNAL, SET_SUBREAPER, SET_NO_NEW_PRIVILEGES = 1, 36, 38
MOUNT_SETATTR = 442
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41, "riscv64": 41}
CAPABILITY_V3 = 0x20080522

libc = ctypes.CDLL(None, use_errno=True)


def leave_namespaces() -> None:
    """New network, processes (from the next fork on), mounts, IPC and host name; the network holds nothing."""
    uid, gid = os.getuid(), os.getgid()
    flags = NEW_MOUNTS | NEW_NAME | NEW_IPC | NEW_PIDS | NEW_NETWORK
    if uid == 0:
        _call("unshare", flags)
        return
    _call("unshare", flags | NEW_USER)
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def make_own_root(shown: list[str], disk_mb: int, owner: int | None) -> None:
    """A root of its own, read-only but for /tmp: the interpreter, its libraries, four devices and its own /proc."""
    root = "/tmp"
    _mount(None, "/", None, RECURSIVE | PRIVATE)
    _mount("tmpfs", root, "tmpfs", NO_SETUID | NO_DEVICES, "size=1m,mode=755")
    for path in shown:
        _show(path, root)
    for name in ("proc", "tmp"):
        os.mkdir(f"{root}/{name}")
    _mount("proc", f"{root}/proc", "proc", NO_SETUID | NO_DEVICES | NO_EXEC)
    owned = "" if owner is None else f",uid={owner},gid={owner}"
    space = f"size={disk_mb}m,nr_inodes=4096,mode=700{owned}"
    _mount("tmpfs", f"{root}/tmp", "tmpfs", NO_SETUID | NO_DEVICES, space)
    os.chdir(root)
    number = PIVOT_ROOT.get(os.uname().machine)
    if number is None:
        raise OSError(f"the number of pivot_root on {os.uname().machine} is not known")
    _call("syscall", number, b".", b".")
    _call("umount2", b".", DETACH)
    os.chdir("/")
    _set_mount(b"/", AT_RECURSIVE, added=READ_ONLY | NO_SETUID)
    _set_mount(b"/tmp", 0, removed=READ_ONLY)


def _show(path: str, root: str) -> None:
    """Bind one path of the host into the new root. Links are copied as links; what is missing is left out."""
    target = root + path
    if not os.path.lexists(path) or os.path.lexists(target):
        return
    os.makedirs(os.path.dirname(target), exist_ok=True)
    if os.path.islink(path):
        os.symlink(os.readlink(path), target)
        return
    if os.path.isdir(path):
        os.mkdir(target)
    else:
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
    _mount(path, target, None, BIND | RECURSIVE)


def _mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    texts = [None if text is None else text.encode() for text in (source, target, kind, data)]
    _call("mount", texts[0], texts[1], texts[2], ctypes.c_ulong(flags), texts[3])


def _set_mount(path: bytes, flags: int, *, added: int = 0, removed: int = 0) -> None:
    """Flags of a mount, and with AT_RECURSIVE of all below it."""
    attributes = (ctypes.c_uint64 * 4)(added, removed, 0, 0)
    _call("syscall", MOUNT_SETATTR, -100, path, flags, ctypes.byref(attributes), ctypes.sizeof(attributes))


def drop_capabilities() -> None:
    """Give up what a user namespace of its own grants: mounts could be undone with it."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_V3, 0)
    _call("capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))


def die_with_parent(number: signal.Signals) -> None:
    """Get this signal when the parent ends. A change of uid forgets it."""
    _call("prctl", SET_DEATH_SIGNAL, number)


def adopt_orphans() -> None:
    """Become the parent of all descendants whose parent ends."""
    _call("prctl", SET_SUBREAPER, 1)


def refuse_new_privileges() -> None:
    """No setuid program gives this process, or what it starts, anything from now on."""
    _call("prctl", SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0)


def _call(name: str, *arguments: Any) -> None:
    if getattr(libc, name)(*arguments) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
