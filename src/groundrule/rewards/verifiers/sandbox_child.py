"""What a sandboxed interpreter does before it sees a candidate: leave the host, take limits, drop, prove it.

Two processes run it. The first (the supervisor; bubblewrap takes its place in that tier) makes the namespaces, waits
for the second, and kills all that the second leaves behind. The second confines itself and goes on to the program.
What cannot be had is an error that the grader reads, never a weaker sandbox.

The text of this file is sent into sandboxes: standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal

from groundrule.rewards.verifiers.sandbox_linux import (
    adopt_orphans,
    die_with_parent,
    drop_capabilities,
    leave_namespaces,
    make_own_root,
    refuse_new_privileges,
)

TYPE_CHECKING = False  # As in sandbox_linux.py.
if TYPE_CHECKING:
    from typing import Any

FAILED = 70
MOST_ROUNDS = 1000


def run(settings: dict[str, Any], read: int, write: int) -> None:
    """Confine this process, tell the grader what is in force, and return in the confined process only."""
    try:
        if settings["mode"] != "bwrap":
            _supervise(settings)
        _confine(settings, keep=(read, write))
        answer = _proof(settings)
    except (OSError, ValueError) as error:
        answer = {"failed": f"{type(error).__name__}: {error}"}
    os.write(write, json.dumps(answer).encode() + b"\n")
    if "failed" in answer:
        os._exit(FAILED)


def _supervise(settings: dict[str, Any]) -> None:
    """Fork; the child returns, the parent stays until the child is gone and then clears up."""
    isolated = settings["mode"] == "isolated"
    die_with_parent(signal.SIGTERM)
    if isolated:
        leave_namespaces()
    else:
        adopt_orphans()
    waited = {signal.SIGTERM, signal.SIGCHLD}
    signal.pthread_sigmask(signal.SIG_BLOCK, waited)
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, waited)
        return
    os.closerange(0, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    code = _wait_for(child, waited)
    if not isolated:
        _kill_the_rest(settings["uid"])
    os._exit(code)


def _wait_for(child: int, waited: set[signal.Signals]) -> int:
    """The exit code, or 128 + the signal that ended it. SIGTERM from the grader kills the child."""
    while True:
        if signal.sigwait(waited) == signal.SIGTERM:
            os.kill(child, signal.SIGKILL)
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _kill_the_rest(uid: int | None) -> None:
    """Without a process namespace: all of the uid where the run has one of its own, else all adopted orphans.

    Returns when they are gone, so that nothing writes into the folder that the grader is about to remove.
    """
    for _ in range(MOST_ROUNDS):
        if uid is not None:
            _kill_from_a_fork(uid)
        else:
            with open(f"/proc/self/task/{os.getpid()}/children") as file:
                for pid in file.read().split():
                    os.kill(int(pid), signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _kill_from_a_fork(uid: int) -> None:
    """Again where the candidate's processes, which have the same uid, kill the killer first."""
    for _ in range(MOST_ROUNDS):
        killer = os.fork()
        if killer == 0:
            os.setgroups([])
            os.setresgid(uid, uid, uid)
            os.setresuid(uid, uid, uid)
            _kill_all_of(uid)
            os._exit(0)
        if os.waitpid(killer, 0)[1] == 0:
            return


def _kill_all_of(uid: int) -> None:
    """Every process of this uid but the caller, which must have no other identity: -1 means all it may kill."""
    if os.getresuid() != (uid, uid, uid) or uid < 1000:
        os._exit(FAILED)
    with contextlib.suppress(ProcessLookupError):
        os.kill(-1, signal.SIGKILL)


# The confined process


def _confine(settings: dict[str, Any], keep: tuple[int, int]) -> None:
    uid = settings["uid"]
    if settings["mode"] == "isolated":
        make_own_root(settings["shown"], settings["disk_mb"], owner=uid)
    if settings["mode"] != "bwrap":
        os.setsid()
    low, high = sorted(keep)
    for start, end in ((3, low), (low + 1, high), (high + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])):
        os.closerange(start, end)
    _limit(settings["limits"])
    if uid is None:
        drop_capabilities()
    else:
        os.setgroups([])
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
    # After the change of uid, which forgets both.
    refuse_new_privileges()
    die_with_parent(signal.SIGKILL)
    if uid is not None and settings["mode"] == "plain":
        _kill_all_of(uid)  # Leftovers of a run whose grader died.
    os.umask(0o077)
    os.chdir(settings["folder"])


def _limit(limits: dict[str, int]) -> None:
    for name, value in limits.items():
        kind = getattr(resource, name)
        if name == "RLIMIT_NPROC" and os.getuid() != 0:
            value += _tasks_of(os.getuid())
        hard = resource.getrlimit(kind)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (value, value))
        if resource.getrlimit(kind) != (value, value):
            raise OSError(f"{name} is {resource.getrlimit(kind)} after it was set to {value}")


def _tasks_of(uid: int) -> int:
    """Threads that the uid already runs, where they can be seen: the limit counts them all."""
    count = 0
    for name in os.listdir("/proc"):
        try:
            if name.isdigit() and os.stat(f"/proc/{name}").st_uid == uid:
                count += len(os.listdir(f"/proc/{name}/task"))
        except OSError:
            continue
    return count


def _proof(settings: dict[str, Any]) -> dict[str, Any]:
    """What is in force, read back from the system after the drop."""
    try:
        os.setuid(0)
    except OSError:
        pass
    else:
        raise OSError("the process could become root again")
    try:
        __import__("colorsys")  # A module that nothing here uses.
    except ImportError:
        raise OSError(
            f"uid {os.getuid()} cannot read the interpreter's library, {os.path.dirname(os.__file__)}"
        ) from None
    with open("/proc/self/status") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file)
    return {
        "uids": [*os.getresuid(), *(os.getresgid() if settings["uid"] is not None else ())],
        "groups": os.getgroups(),
        "capabilities": int(status["CapEff"], 16) | int(status["CapPrm"], 16),
        "no_new_privileges": status["NoNewPrivs"] == "1",
        "namespaces": {name: os.readlink(f"/proc/self/ns/{name}") for name in ("net", "pid", "mnt", "ipc")},
    }
