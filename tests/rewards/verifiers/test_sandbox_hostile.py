"""Programs that attack the machine: it stays unharmed, and each ends as a failure that names its cause."""

from __future__ import annotations

import os
import signal
import socket
import tempfile
from pathlib import Path

import pytest

from groundrule.data.score import Score
from groundrule.rewards.verifiers.code import verify_code
from groundrule.rewards.verifiers.sandbox import SandboxTier
from sandbox_tiers import KINDS, tier_or_skip

NAMED = "import ctypes\nctypes.CDLL(None).prctl(15, b'made-up-bomb')\n"  # Forks keep the name.
FORK_BOMB = NAMED + "import os\ndef attack():\n    while True: os.fork()"
QUIET_FORK_BOMB = f"""
{NAMED}
import os
def attack():
    while True:
        try: os.fork()
        except OSError: pass
"""
MEMORY_BOMB = "def attack():\n    kept = []\n    while True: kept.append(b'x' * (10 << 20))"
ENDLESS_OUTPUT = "def attack():\n    while True: print('again ' * 1000)"
HUGE_ANSWER = "def attack():\n    return 'x' * (20 << 20)"
LARGE_FILE = """
def attack():
    with open('large', 'wb') as file:
        for _ in range(100): file.write(bytes(1 << 20))
"""
MANY_FILES = """
def attack():
    for number in range(100):
        with open(f'file-{number}', 'wb') as file: file.write(bytes(4 << 20))
"""
DAEMON = """
import os
def attack():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for file in range(64):
                try: os.close(file)
                except OSError: pass
            os.execv('/bin/sleep', ['sleep', '61.375'])
        os._exit(0)
    os.wait()
    return 'away'
"""
ODD_FILES = """
import os
def attack():
    os.makedirs('a/b/c')
    open('a/b/c/file', 'w').close()
    os.symlink({kept!r}, 'a/link')
    deep = '.'
    for _ in range(200):
        deep += '/d'
        os.mkdir(deep)
    for folder in ('a/b/c', 'a/b', 'a'): os.chmod(folder, 0)
    os.chmod('.', 0)
    return 'left'
"""


@pytest.fixture(params=KINDS)
def tier(request: pytest.FixtureRequest) -> SandboxTier:
    return tier_or_skip(request.param)


@pytest.fixture
def walled_tier(tier: SandboxTier) -> SandboxTier:
    if not tier.isolated and not tier.own_uid:
        pytest.skip("here a candidate is the same user on the same machine: the tier promises limits only")
    return tier


def attacked(code: str, tier: SandboxTier, *, timeout_s: float = 10, expected: object = "unharmed") -> Score:
    return verify_code(code, [{"fn": "attack", "expected": expected}], timeout_s=timeout_s, require=tier)


def attackers() -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name, command = (entry / "comm").read_text(), (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if name == "made-up-bomb\n" or command == b"sleep\x0061.375\x00":
                found.append(int(entry.name))
    return found


def sandbox_folders() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("groundrule-sandbox-*"))


@pytest.mark.parametrize(
    ("code", "cause"),
    [
        (FORK_BOMB, "processes"),
        (MEMORY_BOMB, "memory"),
        (ENDLESS_OUTPUT, "output"),
        (HUGE_ANSWER, "output"),
        (LARGE_FILE, "disk"),
    ],
    ids=["fork bomb", "memory bomb", "endless output", "huge answer", "large file"],
)
def test_what_exceeds_a_limit_fails_and_names_it(tier, code, cause):
    score = attacked(code, tier)
    assert (score.value, f", {cause}: " in score.explanation) == (0.0, True), score.explanation


def test_a_fork_bomb_that_swallows_its_errors_ends_with_the_time(tier):
    assert ", timeout: " in attacked(QUIET_FORK_BOMB, tier, timeout_s=1).explanation


def test_the_next_program_runs_after_a_fork_bomb(tier):
    attacked(FORK_BOMB, tier)
    assert attacked("def attack():\n    return 'unharmed'", tier).value == 1.0


def test_the_bomb_carries_its_name(tier):
    code = f"{NAMED}def attack(): return open('/proc/self/comm').read()"
    assert attacked(code, tier, expected="made-up-bomb\n").value == 1.0


@pytest.mark.parametrize("code", [FORK_BOMB, QUIET_FORK_BOMB, DAEMON], ids=["bomb", "quiet bomb", "daemon"])
def test_no_process_is_left_behind(tier, code):
    attacked(code, tier, timeout_s=1)
    assert attackers() == []


def test_filling_the_disk_fails_where_the_candidate_has_files_of_its_own(tier):
    if not tier.isolated:
        pytest.skip("only the size of each file is limited in this tier")
    assert ", disk: " in attacked(MANY_FILES, tier).explanation


def test_a_link_out_of_the_folder_leads_nowhere(walled_tier, tmp_path):
    target = tmp_path / "kept"
    target.write_text("as it was")
    code = f"import os\ndef attack():\n    os.symlink({str(target)!r}, 'out')\n    open('out', 'w').write('changed')"
    score = attacked(code, walled_tier)
    assert (score.value, target.read_text()) == (0.0, "as it was"), score.explanation


def test_the_graders_environment_cannot_be_read(walled_tier):
    code = f"def attack():\n    return open('/proc/{os.getpid()}/environ', 'rb').read() and 'read'"
    score = attacked(code, walled_tier, expected="read")
    assert "Error" in score.explanation


def test_the_candidate_gets_none_of_the_environment(tier, monkeypatch):
    monkeypatch.setenv("MADE_UP_API_KEY", "sk-made-up")
    code = "import os\ndef attack():\n    return 'MADE_UP_API_KEY' in os.environ"
    assert attacked(code, tier, expected=False).explanation == "all 1 tests passed"


def test_the_network_is_out_of_reach(tier):
    if not tier.isolated:
        pytest.skip("the network is not blocked in this tier")
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        code = f"import socket\ndef attack():\n    socket.create_connection({address!r}, 2)\n    return 'reached'"
        assert "Error" in attacked(code, tier, expected="reached").explanation


def test_the_grader_cannot_be_sent_a_signal(walled_tier):
    code = f"import os\ndef attack():\n    os.kill({os.getpid()}, {int(signal.SIGCONT)})\n    return 'sent'"
    assert "Error" in attacked(code, walled_tier, expected="sent").explanation


def test_the_home_folder_and_the_graders_folders_cannot_be_written_to(walled_tier, tmp_path):
    folders = [str(Path.home()), str(tmp_path), os.getcwd()]
    code = (
        "import os\ndef attack():\n    written = []\n"
        f"    for folder in {folders!r}:\n"
        "        try: open(os.path.join(folder, 'groundrule-was-here'), 'w').close()\n"
        "        except OSError: continue\n"
        "        written.append(folder)\n"
        "    return written"
    )
    assert attacked(code, walled_tier, expected=[]).explanation == "all 1 tests passed"


def test_what_is_left_in_the_shared_temporary_folder_is_removed(walled_tier):
    left = Path("/tmp/groundrule-left-behind")
    attacked(f"def attack():\n    open({str(left)!r}, 'w').close()", walled_tier)
    assert not left.exists()


def test_a_folder_of_odd_modes_and_links_is_removed_and_no_link_followed(tier, tmp_path):
    (tmp_path / "kept").write_text("as it was")
    before = sandbox_folders()
    attacked(ODD_FILES.format(kept=str(tmp_path)), tier, expected="left")
    assert sandbox_folders() == before
    assert (tmp_path / "kept").read_text() == "as it was"


def test_a_program_that_closes_its_pipes_ends_with_the_time(tier):
    code = "import os, time\ndef attack():\n    os.closerange(0, 64)\n    time.sleep(60)"
    assert ", timeout: " in attacked(code, tier, timeout_s=1).explanation
