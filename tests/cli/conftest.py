"""Runs the command line in this process, the way the installed command does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from groundrule.cli.main import main


@dataclass(frozen=True)
class Outcome:
    """What a command left: its exit code and what it said."""

    code: int
    out: str
    err: str


@pytest.fixture
def groundrule(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """`groundrule("score", path)` runs the command and gives its `Outcome`."""

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([str(a) for a in arguments])
        said = capsys.readouterr()
        code = ended.value.code
        return Outcome(code if isinstance(code, int) else int(code is not None), said.out, said.err)

    return run


@pytest.fixture(autouse=True)
def own_working_folder(tmp_path, monkeypatch):
    """`./runs` of the caller is not touched."""
    monkeypatch.chdir(tmp_path)
