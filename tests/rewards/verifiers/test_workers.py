"""Work that never ends costs a worker, not the program."""

from __future__ import annotations

import os
import selectors
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from groundrule.rewards.verifiers.workers import WorkerError, Workers, WorkerTimeout

PATIENT_S = 60.0


@pytest.fixture
def pool():
    workers = Workers(size=2)
    yield workers
    workers.close()


def test_a_job_gives_its_value(pool):
    assert pool.call("math:sqrt", 9, timeout_s=PATIENT_S) == 3.0


def test_the_same_worker_does_the_next_job(pool):
    assert len({pool.call("os:getpid", timeout_s=PATIENT_S) for _ in range(3)}) == 1


def test_a_job_over_its_limit_is_killed_and_its_worker_replaced(pool):
    before = pool.call("os:getpid", timeout_s=PATIENT_S)
    with pytest.raises(WorkerTimeout, match=r"no result within 0\.2 s"):
        pool.call("time:sleep", 600, timeout_s=0.2)
    assert pool.call("os:getpid", timeout_s=PATIENT_S) != before


def test_an_error_comes_back_in_words_and_the_worker_lives_on(pool):
    before = pool.call("os:getpid", timeout_s=PATIENT_S)
    with pytest.raises(WorkerError, match="ValueError: math domain error"):
        pool.call("math:sqrt", -1, timeout_s=PATIENT_S)
    assert pool.call("os:getpid", timeout_s=PATIENT_S) == before


def test_a_worker_that_dies_is_reported_and_replaced(pool):
    with pytest.raises(WorkerError, match="the worker died"):
        pool.call("os:_exit", 3, timeout_s=PATIENT_S)
    assert pool.call("math:sqrt", 4, timeout_s=PATIENT_S) == 2.0


def test_a_job_that_asks_for_too_much_memory_ends_with_an_error(pool):
    with pytest.raises(WorkerError, match="more memory than a worker may use"):
        pool.call("builtins:bytearray", 1 << 33, timeout_s=PATIENT_S)


def test_what_a_job_prints_does_not_spoil_the_answer(pool):
    assert pool.call("builtins:print", "noise", timeout_s=PATIENT_S) is None


def test_the_answer_to_an_interrupted_job_does_not_reach_the_next_one(pool, monkeypatch):
    before = pool.call("os:getpid", timeout_s=PATIENT_S)

    def interrupted(self: object, timeout: float) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(selectors.DefaultSelector, "select", interrupted)
        pool.call("math:sqrt", 4, timeout_s=PATIENT_S)
    assert pool.call("os:getpid", timeout_s=PATIENT_S) != before


def test_a_worker_is_replaced_after_its_share_of_jobs():
    pool = Workers(size=1, jobs_each=3)
    pids = [pool.call("os:getpid", timeout_s=PATIENT_S) for _ in range(4)]
    pool.close()
    assert len(set(pids[:2])) == 1 and len(set(pids)) == 2


def test_threads_share_no_more_workers_than_the_pool_has(pool):
    with ThreadPoolExecutor(8) as threads:
        pids = list(threads.map(lambda _: pool.call("os:getpid", timeout_s=PATIENT_S), range(40)))
    assert len(set(pids)) <= 2


def test_a_large_job_goes_through(pool):
    assert pool.call("builtins:len", "x" * 1_000_000, timeout_s=PATIENT_S) == 1_000_000


def test_the_keys_of_the_program_are_not_in_a_worker(pool, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "made-up-key")
    assert pool.call("os:getenv", "OPENAI_API_KEY", timeout_s=PATIENT_S) is None


def test_a_closed_pool_starts_anew(pool):
    first = pool.call("os:getpid", timeout_s=PATIENT_S)
    pool.close()
    assert pool.call("os:getpid", timeout_s=PATIENT_S) != first


def test_a_program_without_a_main_guard_leaves_no_worker_behind(tmp_path):
    """Workers do not run the main module again, and end with the program."""
    program = tmp_path / "program.py"
    program.write_text(
        "from groundrule.rewards.verifiers.workers import shared\n"
        "print(shared.call('os:getpid', timeout_s=60))\n",
        "utf-8",
    )
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    [pid] = done.stdout.split()
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_gets_workers_of_its_own(tmp_path):
    program = (
        "import os\n"
        "from groundrule.rewards.verifiers.workers import shared\n"
        "mine = shared.call('os:getpid', timeout_s=60)\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    other = shared.call('os:getpid', timeout_s=60)\n"
        "    shared.close()\n"
        "    os._exit(0 if other != mine else 1)\n"
        "code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])\n"
        "print(code, shared.call('os:getpid', timeout_s=60) == mine)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "0 True\n"
