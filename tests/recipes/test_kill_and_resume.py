"""A real training process on Python's own documentation, killed in the middle of a step and started again."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from groundrule.recipes.doctor import examine
from tiny import tiny_network, tiny_tokenizer

PYDOC = Path(__file__).parents[2] / "examples" / "pydoc.toml"
STEPS = 3


@dataclass(frozen=True)
class Command:
    """`groundrule train examples/pydoc.toml --steps 3 --run FOLDER`, with the tiny model in every part."""

    model: Path
    folder: Path

    def line(self) -> list[str]:
        changes = {
            "policy.base_model": self.model,
            "judge.model": f"local/likelihood:{self.model}",
            "scenarios.held_out_limit": 2,
            "train.group_size": 4,
            "policy.max_tokens": 24,
        }
        sets = [part for name, value in changes.items() for part in ("--set", f"{name}={value}")]
        command = [sys.executable, "-m", "groundrule", "train", str(PYDOC), "--steps", str(STEPS)]
        return [*command, "--run", str(self.folder), *sets]

    def to_the_end(self) -> str:
        done = subprocess.run(self.line(), env=calm(), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @contextmanager
    def started(self) -> Iterator[subprocess.Popen[str]]:
        """The running process; it is killed when the block is left."""
        process = subprocess.Popen(
            self.line(),
            env=calm(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            # A shell starts background jobs with Ctrl-C ignored, and children inherit that.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def calm() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}


@pytest.fixture(scope="module")
def model_folder(tmp_path_factory) -> Path:
    """The tiny model as a Hugging Face folder, with room for a page of documentation."""
    folder = tmp_path_factory.mktemp("model") / "tiny"
    network = tiny_network()
    network.config.max_position_embeddings = 4096
    network.save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def whole(model_folder, tmp_path_factory) -> Path:
    """The folder of an uninterrupted run."""
    folder = tmp_path_factory.mktemp("whole") / "run"
    Command(model_folder, folder).to_the_end()
    return folder


@dataclass(frozen=True)
class Resumed:
    """A run that was killed twice in its second step, and what its first step was before and after."""

    folder: Path
    first_before: dict[str, bytes]
    first_after: dict[str, bytes]
    step_when_killed: list[int]


@pytest.fixture(scope="module")
def resumed(model_folder, whole, tmp_path_factory) -> Resumed:
    command = Command(model_folder, tmp_path_factory.mktemp("killed") / "run")
    work_s = metrics(whole)[1]["time/rollouts_and_judge_s"]
    with command.started() as process:
        wait_for_line(process, f"step 1/{STEPS}:")
        first = first_step(command.folder)
        time.sleep(0.3 * work_s)
    killed = [step(command.folder)]
    with command.started() as process:
        # The first thing that a resumed run does is the next step's rollouts.
        wait_for_work(process, command.folder)
        time.sleep(0.6 * work_s)
    killed.append(step(command.folder))
    command.to_the_end()
    return Resumed(command.folder, first, first_step(command.folder), killed)


def wait_for_line(process: subprocess.Popen[str], start: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(start):
            return
    pytest.fail(f"the process ended before it said {start!r}")


def wait_for_work(process: subprocess.Popen[str], folder: Path, patience_s: float = 60.0) -> None:
    """Until the process holds the run: from then on it works on the next step."""
    deadline = time.monotonic() + patience_s
    while (folder / ".lock").read_text("ascii").strip() != str(process.pid):
        if time.monotonic() > deadline:
            pytest.fail("the process did not take the run")
        time.sleep(0.02)


def metrics(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text("utf-8").splitlines()]


def step(folder: Path) -> int:
    number: int = json.loads((folder / "state.json").read_text("utf-8"))["step"]
    return number


def first_step(folder: Path) -> dict[str, bytes]:
    """Everything that step 1 left: checkpoint, groups, and its line of the metrics."""
    files = [
        *(folder / "checkpoints" / "step-000001").iterdir(),
        folder / "trajectories" / "step-000001.jsonl",
    ]
    kept = {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(files)}
    return {**kept, "metrics": (folder / "metrics.jsonl").read_bytes().split(b"\n")[0]}


def adapter(folder: Path) -> bytes:
    return (folder / "checkpoints" / f"step-{STEPS:06d}" / "adapter_model.safetensors").read_bytes()


def test_a_training_on_the_documentation_leaves_a_complete_run_folder(whole):
    expected = [
        "config.json",
        "metrics.jsonl",
        "report.html",
        "state.json",
        "checkpoints",
        "evaluations",
        "trajectories",
    ]
    assert [name for name in expected if not (whole / name).exists()] == []


def test_the_training_moves_the_adapter(whole):
    assert [f.text for f in examine(whole) if "different adapters" in f.text] == [
        "3 different adapters in 3 kept checkpoints"
    ]


def test_both_kills_hit_the_second_step(resumed):
    assert resumed.step_when_killed == [1, 1]


def test_a_killed_run_keeps_what_was_complete_byte_for_byte(resumed):
    assert resumed.first_after == resumed.first_before


def test_a_killed_run_ends_with_every_step_once(resumed):
    assert [line["step"] for line in metrics(resumed.folder)] == [1, 2, 3]


def test_a_killed_run_ends_with_the_adapter_of_an_uninterrupted_one(resumed, whole):
    assert adapter(resumed.folder) == adapter(whole)


def test_a_killed_run_leaves_nothing_half_written(resumed):
    assert [p.name for p in resumed.folder.rglob("*") if p.name.endswith(".tmp")] == []


@pytest.fixture(scope="module")
def interrupted(model_folder, tmp_path_factory) -> tuple[int, str, Path]:
    """Exit code, output and folder of a run that was stopped with Ctrl-C in its second step."""
    command = Command(model_folder, tmp_path_factory.mktemp("interrupted") / "run")
    with command.started() as process:
        wait_for_line(process, f"step 1/{STEPS}:")
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=60)
    return process.returncode, said, command.folder


def test_ctrl_c_ends_with_130_and_says_how_to_go_on(interrupted):
    code, said, _ = interrupted
    assert (code, said.strip()) == (
        130,
        "stopped; a training goes on from its last complete step when the same command is run again",
    )


def test_ctrl_c_leaves_a_run_that_can_be_opened_at_its_last_complete_step(interrupted):
    assert step(interrupted[2]) in (1, 2)
