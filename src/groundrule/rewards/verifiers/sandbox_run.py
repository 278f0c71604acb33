"""One sandboxed interpreter: started, proved, asked, and killed with everything that it left behind.

The grader talks over two pipes of its own, one line of JSON each way; what the candidate prints goes elsewhere.
Every message carries a token that did not exist before it was sent, and the answer must carry it back: an answer
written beforehand is not one.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from groundrule.rewards.verifiers.sandbox import Limits, SandboxTier, bwrap_command, settings_of
from groundrule.rewards.verifiers.sandbox_channel import Channel, Stopped
from groundrule.rewards.verifiers.sandbox_failure import SandboxFailure
from groundrule.rewards.verifiers.sandbox_leftovers import children_of, remove_files_of, remove_folder
from groundrule.rewards.verifiers.sandbox_uids import UidLease, lease_uid

START_S = 30.0
"""For the interpreter to come up and prove its confinement, on a machine that is busy with a training."""
LAST_S = 5.0
"""For a killed sandbox to be gone."""
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "PYTHONHASHSEED": "0"}


@dataclass(frozen=True)
class Ended:
    """A program that ran to its end."""

    stdout: bytes
    stderr: bytes
    code: int
    """128 + the signal where one ended it."""


class SandboxRun:
    """A context: inside it the interpreter lives; leaving it leaves nothing behind.

    Raises `SandboxFailure` where it cannot be started, or where the proof of its confinement is not the one that
    the tier promises. Everything after that is the candidate's doing and raises `Stopped`.
    """

    def __init__(self, tier: SandboxTier, limits: Limits, *, stdin: bytes | None = None) -> None:
        self._tier, self._limits, self._stdin = tier, limits, stdin
        self._channel = Channel(timeout_s=START_S, most_bytes=int(limits.output_mb * (1 << 20)))
        self._ends: list[int] = []
        self._lease: UidLease | None = None
        self._folder: str | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._start()
            if fault := fault_in_proof(self._proof(), self._tier, self._uid):
                raise SandboxFailure(fault)
        except (OSError, Stopped, SandboxFailure) as error:
            self.close()
            raise SandboxFailure(f"{self._tier.python} in {self._tier.name}: {error}") from error
        except BaseException:
            self.close()
            raise
        self.begin(time.monotonic() + self._limits.timeout_s)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def begin(self, deadline: float) -> None:
        """Let the candidate's time end at this moment of `time.monotonic()`."""
        self._channel.deadline = deadline

    def load(self, *modules: str) -> None:
        """Send the harness: modules of this folder, the first of which runs on what those after it offer."""
        self.tell(_sources(*modules))

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send a message; it leaves while an answer, or the end, is waited for."""
        try:
            line = json.dumps(message).encode() + b"\n"
        except RecursionError as error:  # What one candidate answered, on its way to the tests.
            raise Stopped("forgery", "an answer is nested too deep") from error
        self._channel.send(self._questions, line)

    def ask(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Send a message, wait for its answer."""
        token = secrets.token_hex(8)
        self.tell({**message, "id": token})
        line = self._line()
        try:
            answer = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise Stopped("forgery", f"something other than an answer came: {line[:60]!r}") from error
        if not isinstance(answer, dict) or answer.pop("id", None) != token:
            raise Stopped("forgery", "an answer came to a question that had not been asked")
        return answer

    def finish(self) -> Ended:
        """Send the input, wait until the program has ended."""
        stdin = self._running.stdin
        if stdin is not None:
            self._channel.send(stdin.fileno(), self._stdin or b"", then=stdin.close)
        stdout, stderr = self._channel.rest(self._out, self._err)
        return Ended(stdout, stderr, self._exit_code())

    @property
    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    @property
    def _uid(self) -> int:
        return os.getuid() if self._lease is None else self._lease.uid

    # Starting

    def _start(self) -> None:
        tier = self._tier
        self._lease = lease_uid() if tier.own_uid else None
        if not tier.isolated:
            self._folder = tempfile.mkdtemp(prefix="groundrule-sandbox-")
            if self._lease is not None:
                os.chown(self._folder, self._uid, self._uid)
        folder = self._folder or "/tmp"
        self._spawn({**ENVIRONMENT, "HOME": folder, "TMPDIR": folder})
        for file in (self._answers, self._out, self._err):
            self._channel.listen(file)
        settings = settings_of(tier, self._limits, uid=self._uid if self._lease else None, folder=folder)
        self.tell({"sources": _sources("sandbox_child", "sandbox_linux"), "settings": settings})

    def _spawn(self, environment: Mapping[str, str]) -> None:
        """The pipes and the process. Nothing else of this process is open in it."""
        theirs_in, self._questions = os.pipe()
        self._answers, theirs_out = os.pipe()
        self._ends += [self._questions, self._answers]
        wrapper = bwrap_command(self._tier, self._limits) if self._tier.name == "bwrap" else []
        python = [self._tier.python, "-S", "-s", "-B", "-X", "utf8", "-c", _source_of("sandbox_boot")]
        try:
            process = self._process = subprocess.Popen(
                [*wrapper, *python, str(theirs_in), str(theirs_out)],
                stdin=subprocess.DEVNULL if self._stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                bufsize=0,
                pass_fds=(theirs_in, theirs_out),
                env=environment,
                cwd="/",
                start_new_session=True,
            )
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        assert process.stdout is not None and process.stderr is not None
        self._out, self._err = process.stdout.fileno(), process.stderr.fileno()

    def _proof(self) -> dict[str, Any]:
        """The child's own word is good: nothing of the candidate has reached it yet."""
        proof: dict[str, Any] = json.loads(self._line())
        if "failed" in proof:
            raise SandboxFailure(proof["failed"])
        return proof

    # Ending

    def _line(self) -> bytes:
        line = self._channel.line(self._answers)
        if line is None:
            raise self._end_of_run()
        return line

    def _end_of_run(self) -> Stopped:
        code = self._exit_code()
        lines = self._channel.so_far(self._err).decode(errors="replace").strip().splitlines()
        words = f"({lines[-1][:300]})" if lines else ""
        if code > 128:
            return Stopped("signal", f"ended by {_signal_name(code - 128)} {words}".rstrip())
        return Stopped("exit", f"ended with code {code} before it answered {words}".rstrip())

    def _exit_code(self) -> int:
        try:
            code = self._running.wait(min(LAST_S, self._channel.left_s))
        except subprocess.TimeoutExpired:
            raise Stopped("timeout", "it closed its pipes and went on") from None
        return code if code >= 0 else 128 - code

    def close(self) -> None:
        """Kill everything that the run started, and give back its uid and its folder."""
        if self._process is not None:
            self._kill(self._process)
            for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
                if stream is not None:
                    stream.close()
        self._channel.close()
        for file in self._ends:
            os.close(file)
        if self._folder is not None:
            remove_folder(self._folder)
            if self._lease is not None:
                remove_files_of(self._uid)
        if self._lease is not None:
            self._lease.release()
        self._process = self._folder = self._lease = None
        self._ends = []

    def _kill(self, process: subprocess.Popen[bytes]) -> None:
        """Our supervisor clears up when it is asked to end; bubblewrap ends when its namespace's first process does."""
        children = children_of(process.pid) if self._tier.name == "bwrap" else []
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        if not children:
            process.terminate()
        try:
            process.wait(LAST_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def fault_in_proof(proof: Mapping[str, Any], tier: SandboxTier, uid: int) -> str | None:
    """Where the child is not confined as the tier promises; None where it is."""
    if 0 in proof["uids"] or set(proof["uids"]) != {uid}:
        return f"the child runs as uids {proof['uids']}, not as {uid}"
    if proof["capabilities"] or not proof["no_new_privileges"]:
        return "the child kept privileges"
    if tier.own_uid and proof["groups"]:
        return f"the child kept the groups {proof['groups']}"
    shared = [
        name for name, inode in proof["namespaces"].items() if os.readlink(f"/proc/self/ns/{name}") == inode
    ]
    return f"the child shares {', '.join(shared)} with this process" if tier.isolated and shared else None


def _signal_name(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def _sources(*modules: str) -> dict[str, str]:
    return {f"{__package__}.{name}": _source_of(name) for name in modules}


@cache
def _source_of(module: str) -> str:
    return Path(__file__).with_name(f"{module}.py").read_text("utf-8")
