"""`groundrule rank`, as a program of its own and by its errors."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys

import httpx
import pytest

from fakes import group_of
from groundrule.data.preference_records import read_rankings, write_rankings
from groundrule.data.records import write_groups
from preferences import ranking


@pytest.fixture
def file(tmp_path):
    write_groups(tmp_path / "groups.jsonl", [group_of("Yes.", "No."), group_of("Never.", "Ever.")])
    return tmp_path / "groups.jsonl"


def test_the_program_prints_its_address_saves_and_stops_cleanly(file):
    command = [sys.executable, "-m", "groundrule", "rank", str(file), "--annotator", "ann"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            address = process.stdout.readline().split()[2]
            home = address.partition("/?")[0]
            with httpx.Client(base_url=home, headers={"origin": home}) as client:
                assert client.get("/api/state").status_code == 403
                assert client.get(address).status_code == 200
                task = client.get("/api/state").json()["task"]
                body = {"task": task["key"], "order": [[1], [0]]}
                assert client.post("/api/judge", json=body).json()["done"] == 1
                out = file.with_name("groups.rankings.jsonl")
                assert len(read_rankings(out)) == 1
                process.send_signal(signal.SIGINT)
                said, complaints = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, complaints) == (0, "")
    assert said.strip() == f"1 of 2 judged by ann -> {out}"


def test_all_done_is_said_at_once(groundrule, tmp_path):
    write_rankings(tmp_path / "in.jsonl", [ranking("good", "bad")])
    write_rankings(tmp_path / "out.jsonl", [ranking("bad", "good", annotator="ann")])
    done = groundrule("rank", tmp_path / "in.jsonl", "--out", tmp_path / "out.jsonl", "--annotator", "ann")
    assert (done.code, done.out.strip()) == (0, f"all 1 are judged by ann -> {tmp_path / 'out.jsonl'}")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (None, "cannot be read"),
        ("", "holds no two different answers"),
        ("not json\n", "line 1"),
        ('{"color": "red"}\n', "a group needs 'trajectories'"),
        ('{"prompt": "Hi", "answers": ["a", "b"], "order": ["x"]}\n', "line 1"),
    ],
)
def test_a_wrong_file_is_named_and_nothing_is_written(groundrule, tmp_path, content, what):
    file = tmp_path / "wrong.jsonl"
    if content is not None:
        file.write_text(content)
    done = groundrule("rank", file)
    assert done.code == 2 and what in done.err and str(file) in done.err
    assert not (tmp_path / "wrong.rankings.jsonl").exists()


def test_a_taken_port_is_named(groundrule, file):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = groundrule("rank", file, "--port", taken.getsockname()[1])
    assert done.code == 1 and "is in use; name another with --port" in done.err


@pytest.mark.parametrize("name", ["", "  ", "a\nb"])
def test_an_annotator_without_a_readable_name_is_refused(groundrule, file, name):
    done = groundrule("rank", file, "--annotator", name)
    assert done.code == 2 and "is no name" in done.err


def test_a_folder_that_is_no_run_is_refused(groundrule, tmp_path):
    (tmp_path / "folder").mkdir()
    done = groundrule("rank", tmp_path / "folder")
    assert done.code == 2 and "folder" in done.err
