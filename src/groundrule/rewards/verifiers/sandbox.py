"""Where foreign code runs: two tiers, found out once by trying them, and a refusal where neither can be had.

`bwrap`: bubblewrap builds the surroundings. `user`: the same with our own forty lines where the kernel lets us
(`isolated`), else another uid and limits only. No tier runs anything as root. docs/sandbox.md says what each of
them guarantees and what it does not.
"""

from __future__ import annotations

import functools
import logging
import os
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from groundrule.errors import ConfigError
from groundrule.rewards.verifiers.sandbox_failure import SandboxFailure
from groundrule.rewards.verifiers.sandbox_uids import COUNT, FIRST

logger = logging.getLogger(__name__)

TierName = Literal["bwrap", "user"]

SYSTEM_PATHS = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache")
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
OTHER_PYTHONS = ("/usr/bin/python3", "/usr/local/bin/python3")


@dataclass(frozen=True)
class Limits:
    """What one sandboxed run may use. What exceeds them fails inside the sandbox, or ends the run."""

    timeout_s: float = 10.0
    """Wall time from the moment that the candidate arrives; processor time is limited to a little more."""
    memory_mb: int = 512
    """Address space of each process."""
    processes: int = 8
    """Processes and threads together."""
    file_mb: int = 8
    """Size of each file that is written."""
    disk_mb: int = 32
    """All files together, where the tier has files of its own."""
    open_files: int = 64
    output_mb: float = 4.0
    """Everything that is printed or answered."""


@dataclass(frozen=True)
class SandboxTier:
    """What stands between a candidate and this machine."""

    name: TierName
    isolated: bool
    """True: no network, and none of the host's processes and files but the interpreter and its libraries."""
    own_uid: bool
    """True: each run has a uid of its own. False: the candidate is the same user as this process."""
    python: str

    def __str__(self) -> str:
        who = (
            f"a uid of its own ({FIRST}-{FIRST + COUNT - 1})" if self.own_uid else f"uid {os.getuid()}, yours"
        )
        where = (
            "without network, with files and processes of its own"
            if self.isolated
            else "NETWORK NOT BLOCKED, the host's files and processes in sight"
        )
        return f"{self.name}: {who}, {where}, limits on time, memory, processes and output; {self.python}"


def sandbox_tier(require: TierName | SandboxTier | None = None) -> SandboxTier:
    """The strongest tier that works here; says which in the log, once.

    `require="bwrap"` insists on bubblewrap; a `SandboxTier` is taken as it is. Raises `ConfigError` with the
    reasons where no tier that is allowed works: nothing runs without a sandbox.
    """
    return require if isinstance(require, SandboxTier) else _best_tier(require)


def available_tiers() -> list[SandboxTier]:
    """All tiers that work here, strongest first."""
    return [tier for tier in _candidates() if _fault(tier) is None]


@functools.cache
def _best_tier(require: TierName | None) -> SandboxTier:
    faults = []
    for tier in _candidates():
        if require in (None, tier.name):
            fault = _fault(tier)
            if fault is None:
                logger.log(logging.INFO if tier.isolated else logging.WARNING, "candidates run in %s", tier)
                return tier
            faults.append(fault)
    raise ConfigError(_refusal(require, faults))


def _refusal(require: TierName | None, faults: list[str]) -> str:
    what = f"the sandbox {require!r} cannot be had" if require else "no sandbox for foreign code can be had"
    if sys.platform != "linux":
        return f"{what} on {sys.platform}; it needs Linux, for example in a container"
    if require == "bwrap" and not faults:
        return f"{what}: bwrap is not installed; install bubblewrap or leave out require"
    return f"{what}, so nothing is run: {'; '.join(faults)}. docs/sandbox.md says what each needs"


def _candidates() -> Iterator[SandboxTier]:
    """Strongest first. As root the interpreter may lie where only root can read it; then another is tried."""
    if sys.platform != "linux":
        return
    python, is_root = str(getattr(sys, "_base_executable", sys.executable)), os.geteuid() == 0
    if shutil.which("bwrap"):
        yield SandboxTier("bwrap", isolated=True, own_uid=is_root, python=python)
    yield SandboxTier("user", isolated=True, own_uid=is_root, python=python)
    others = [path for path in OTHER_PYTHONS if is_root and os.path.exists(path)]
    for path in dict.fromkeys((python, *others)):
        yield SandboxTier("user", isolated=False, own_uid=is_root, python=path)


@functools.cache
def _fault(tier: SandboxTier) -> str | None:
    """Why this tier does not work here, found out by starting it; None when it does."""
    from groundrule.rewards.verifiers.sandbox_run import SandboxRun

    try:
        with SandboxRun(tier, Limits()):
            return None
    except SandboxFailure as failure:
        return str(failure)


def settings_of(tier: SandboxTier, limits: Limits, *, uid: int | None, folder: str) -> dict[str, object]:
    """What `sandbox_child.py` is told."""
    mib = 1 << 20
    cpu_s = int(limits.timeout_s) + 2
    return {
        "mode": "bwrap" if tier.name == "bwrap" else "isolated" if tier.isolated else "plain",
        "uid": uid,
        "folder": folder,
        "shown": shown_paths(),
        "disk_mb": limits.disk_mb,
        "limits": {
            "RLIMIT_CORE": 0,
            "RLIMIT_CPU": cpu_s,
            "RLIMIT_AS": limits.memory_mb * mib,
            "RLIMIT_FSIZE": limits.file_mb * mib,
            "RLIMIT_NOFILE": limits.open_files,
            "RLIMIT_NPROC": limits.processes,
        },
    }


def shown_paths() -> list[str]:
    """The host's files that an isolated candidate may read: the system's programs and this interpreter."""
    prefixes = [sys.base_prefix, sys.base_exec_prefix]
    prefixes += [
        os.path.realpath(prefix) for prefix in prefixes
    ]  # Where a prefix is a link, both of its names are needed.
    own = [p for p in dict.fromkeys(prefixes) if p not in ("/", "/usr") and not p.startswith("/usr/")]
    return [*SYSTEM_PATHS, *own, *DEVICES]


def bwrap_command(tier: SandboxTier, limits: Limits) -> list[str]:
    """Bubblewrap's part of the command line.

    Started by root it needs no user namespace, and keeps the one ability that is needed to drop to another uid.
    """
    if tier.own_uid:
        spaces = ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"]
        spaces += ["--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"]
    else:
        spaces = ["--unshare-user", "--unshare-all"]
    binds = []
    for path in shown_paths():
        if path in DEVICES or not os.path.lexists(path):
            continue
        for folder in reversed(Path(path).parents[:-1]):  # Of itself bubblewrap makes some for root alone.
            binds += ["--perms", "0755", "--dir", str(folder)]
        binds += ["--symlink", os.readlink(path), path] if os.path.islink(path) else ["--ro-bind", path, path]
    size = str(limits.disk_mb << 20)
    files = ["--proc", "/proc", "--dev", "/dev", "--size", size, "--perms", "1777", "--tmpfs", "/tmp"]
    return [
        shutil.which("bwrap") or "bwrap",
        *spaces,
        "--die-with-parent",
        "--new-session",
        *binds,
        *files,
        "--chdir",
        "/",
        "--",
    ]
