"""What a sandboxed process is and may, as it can be seen from inside, and what happens where there is no sandbox."""

from __future__ import annotations

import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from groundrule.errors import ConfigError
from groundrule.rewards.verifiers import sandbox
from groundrule.rewards.verifiers.code_values import decode
from groundrule.rewards.verifiers.sandbox import Limits, SandboxTier, sandbox_tier
from groundrule.rewards.verifiers.sandbox_channel import Stopped
from groundrule.rewards.verifiers.sandbox_failure import SandboxFailure
from groundrule.rewards.verifiers.sandbox_run import SandboxRun, fault_in_proof
from groundrule.rewards.verifiers.sandbox_uids import LOCKS
from sandbox_tiers import KINDS, tier_or_skip

HARNESS = ("code_candidate", "code_peer", "code_values")
LOOK = """
import os, resource
def identity(): return [*os.getresuid(), *os.getresgid(), *os.getgroups()]
def limit(name): return resource.getrlimit(getattr(resource, "RLIMIT_" + name))[1]
def status(name): return [l.split()[1] for l in open("/proc/self/status") if l.startswith(name + ":")][0]
def raise_limit(): resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
def files(): return [f for f in range(64) if os.path.exists(f"/proc/self/fd/{f}")]
def root(): return sorted(os.listdir("/"))
def processes(): return len([p for p in os.listdir("/proc") if p.isdigit()])
def become_root(): os.setuid(0)
"""


ANSWER_AHEAD = """
import os
for file in range(3, 64):
    try: os.write(file, b'{"id": "", "value": 1}\\n')
    except OSError: pass
"""


@pytest.fixture(params=KINDS)
def tier(request: pytest.FixtureRequest) -> SandboxTier:
    return tier_or_skip(request.param)


@pytest.fixture
def fresh_choice() -> Iterator[None]:
    """The choice of a tier is remembered; forget it before and after."""
    sandbox._best_tier.cache_clear()
    yield
    sandbox._best_tier.cache_clear()


def answer(run: SandboxRun, fn: str, *args: Any) -> Any:
    said = run.ask({"do": "call_named", "args": [fn, ["list", list(args)], ["dict", []]]})
    return decode(said["value"]) if "value" in said else said["raised"]["types"][0]


def ask_inside(tier: SandboxTier, fn: str, *args: Any, limits: Limits | None = None) -> Any:
    with SandboxRun(tier, limits or Limits()) as run:
        run.load(*HARNESS)
        run.ask({"do": "load", "args": [LOOK]})
        return answer(run, fn, *args)


def test_nothing_runs_as_root(tier):
    assert 0 not in ask_inside(tier, "identity")[:3]


def test_root_cannot_be_had_back(tier):
    assert ask_inside(tier, "become_root") in ("PermissionError", "OSError")


@pytest.mark.parametrize(("name", "value"), [("CapEff", "0" * 16), ("CapPrm", "0" * 16), ("NoNewPrivs", "1")])
def test_no_privilege_is_kept(tier, name, value):
    assert ask_inside(tier, "status", name) == value


@pytest.mark.parametrize(
    ("name", "value"), [("AS", 300 << 20), ("CORE", 0), ("FSIZE", 3 << 20), ("NOFILE", 40), ("CPU", 9)]
)
def test_a_limit_is_in_force(tier, name, value):
    asked = Limits(timeout_s=7.5, memory_mb=300, file_mb=3, open_files=40)
    assert ask_inside(tier, "limit", name, limits=asked) == value


def test_a_limit_cannot_be_raised(tier):
    assert ask_inside(tier, "raise_limit") == "ValueError"


def test_no_file_of_the_grader_is_open(tier):
    with open(os.devnull) as kept:
        os.set_inheritable(kept.fileno(), True)
        files = ask_inside(tier, "files")
    assert (files[:3], len(files)) == ([0, 1, 2], 5)  # And the two pipes to the grader.


def test_an_isolated_run_sees_the_interpreter_and_nothing_else(tier):
    if not tier.isolated:
        pytest.skip("the host's files are in sight in this tier")
    own = {Path(sys.base_prefix).parts[1]}
    system = {"bin", "dev", "etc", "lib", "lib32", "lib64", "proc", "sbin", "tmp", "usr"}
    assert set(ask_inside(tier, "root")) <= own | system


def test_an_isolated_run_sees_no_process_of_the_host(tier):
    if not tier.isolated:
        pytest.skip("the host's processes are in sight in this tier")
    assert ask_inside(tier, "processes") <= 2


def test_two_runs_at_once_have_different_uids(tier):
    if not tier.own_uid:
        pytest.skip("only root can give a run a uid of its own")
    with SandboxRun(tier, Limits()) as one, SandboxRun(tier, Limits()) as other:
        uids = []
        for run in (one, other):
            run.load(*HARNESS)
            run.ask({"do": "load", "args": [LOOK]})
            uids.append(answer(run, "identity")[0])
    assert uids[0] != uids[1]


def test_an_answer_without_the_token_of_its_question_is_refused(tier):
    with SandboxRun(tier, Limits()) as run:
        run.load(*HARNESS)
        with pytest.raises(Stopped, match="had not been asked"):
            run.ask({"do": "load", "args": [ANSWER_AHEAD]})


def test_an_interpreter_that_is_not_there_is_a_failure_of_the_sandbox(tier):
    with (
        pytest.raises(SandboxFailure, match="/nowhere/python3"),
        SandboxRun(replace(tier, python="/nowhere/python3"), Limits()),
    ):
        pass


ISOLATED = SandboxTier("user", isolated=True, own_uid=True, python="/usr/bin/python3")
PROOF = {
    "uids": [60600] * 6,
    "groups": [],
    "capabilities": 0,
    "no_new_privileges": True,
    "namespaces": {"net": "net:[1]", "pid": "pid:[2]"},
}


def test_a_proof_of_what_was_promised_is_accepted():
    assert fault_in_proof(PROOF, ISOLATED, 60600) is None


@pytest.mark.parametrize(
    ("lie", "fault"),
    [
        ({"uids": [60600, 60600, 0]}, "runs as uids"),
        ({"uids": [60601] * 6}, "runs as uids"),
        ({"groups": [27]}, "kept the groups"),
        ({"capabilities": 1}, "kept privileges"),
        ({"no_new_privileges": False}, "kept privileges"),
        ({"namespaces": {"net": os.readlink("/proc/self/ns/net")}}, "shares net with"),
    ],
    ids=["root", "another uid", "groups", "capabilities", "new privileges", "network"],
)
def test_a_proof_of_less_is_a_fault(lie, fault):
    assert fault in str(fault_in_proof({**PROOF, **lie}, ISOLATED, 60600))


def test_a_grader_that_is_killed_leaves_no_process(tier):
    program = (
        "from groundrule.rewards.verifiers.code import verify_code\n"
        "from groundrule.rewards.verifiers.sandbox import SandboxTier\n"
        f"tier = {tier!r}\n"
        'code = \'import subprocess\\nsubprocess.run(["sleep", "83.625"])\'\n'
        "verify_code(code, [{'fn': 'f', 'expected': 1}], require=tier, timeout_s=60)\n"
    )
    folders = _folders()
    grader = subprocess.Popen([sys.executable, "-c", program])
    assert _wait(lambda: bool(_sleepers()))
    grader.send_signal(signal.SIGKILL)
    grader.wait()
    gone = _wait(lambda: not _sleepers())
    for left in _folders() - folders:
        shutil.rmtree(left)
    assert gone


def _folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("groundrule-sandbox-*")) - {LOCKS}


def _sleepers() -> list[str]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            command = (entry / "cmdline").read_bytes() if entry.name.isdigit() else b""
        except OSError:
            continue
        if command == b"sleep\x0083.625\x00":
            found.append(entry.name)
    return found


def _wait(is_so: Any) -> bool:
    """Whether it becomes so; gives up after a minute."""
    for _ in range(600):
        if is_so():
            return True
        time.sleep(0.1)
    return False


# The choice of a tier


def test_the_choice_is_said_once(fresh_choice, caplog):
    with caplog.at_level(logging.INFO, logger="groundrule"):
        sandbox_tier()
        sandbox_tier()
    assert [record.getMessage()[:17] for record in caplog.records] == ["candidates run in"]


def test_bubblewrap_can_be_insisted_on(fresh_choice, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(
        ConfigError, match="'bwrap' cannot be had: bwrap is not installed; install bubblewrap"
    ):
        sandbox_tier("bwrap")


def test_where_no_tier_works_nothing_runs(fresh_choice, monkeypatch):
    monkeypatch.setattr(sys, "platform", "plan9")
    with pytest.raises(ConfigError, match="no sandbox for foreign code can be had on plan9; it needs Linux"):
        sandbox_tier()


def test_a_tier_says_what_it_does_not_give():
    tier = SandboxTier("user", isolated=False, own_uid=True, python="/usr/bin/python3")
    assert str(tier) == (
        "user: a uid of its own (60600-60999), NETWORK NOT BLOCKED, the host's files and processes in sight, "
        "limits on time, memory, processes and output; /usr/bin/python3"
    )
