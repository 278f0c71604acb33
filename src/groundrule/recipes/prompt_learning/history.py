"""The versions of a prompt that a run has learned: read, compared, and gone back to."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from groundrule._util.files import write_atomic
from groundrule.data.runs import Run
from groundrule.errors import ConfigError, RunError
from groundrule.prompt_learning.state import LearnerState
from groundrule.prompt_learning.versions import Pool, Version
from groundrule.recipes.prompt_learning.files import PROMPT_FILE, read_spec


@dataclass(frozen=True)
class History:
    """A run's versions, and the spec below which they stand."""

    folder: Path
    state: LearnerState
    spec: str

    @property
    def pool(self) -> Pool:
        """All versions."""
        return self.state.pool

    def prompt(self, version: Version) -> str:
        """The whole text of a version."""
        return version.playbook.below(self.spec)


def read_history(folder: Path) -> History:
    """Raises `RunError` for a folder in which no prompt was learned by lessons."""
    run = Run.open(folder, read_only=True)
    return _history(run)


def go_back(folder: Path, number: int) -> Version:
    """Make an earlier version the one that is shipped and gone on from; what came after it stays in the history."""
    with Run.open(folder) as run:
        history = _history(run)
        pool, state = history.pool, history.state
        wanted = pool[number]
        if wanted is pool.head:
            raise ConfigError(f"version {number} is the current one already")
        version = Version(
            pool.next_number,
            wanted.playbook,
            parent=wanted.number,
            how="rollback",
            round=state.round,
            gains=dict(wanted.gains),
        )
        pool.only(version)
        state.parent, state.carried = version.number, []
        run.keep_state(state.to_dict())
        write_atomic(folder / PROMPT_FILE, f"{history.prompt(version)}\n")
        return version


def difference(history: History, old: int, new: int) -> Iterator[str]:
    """The lines of a unified diff of two versions' texts; none where they are the same."""
    before, after = (history.prompt(history.pool[number]).splitlines() for number in (old, new))
    return difflib.unified_diff(before, after, f"version {old}", f"version {new}", lineterm="", n=1)


def _history(run: Run) -> History:
    if not run.state and run.step == 0:
        raise RunError(
            f"{run.folder} has no complete round yet; run groundrule learn-prompt with its configuration"
        )
    if "pool" not in run.state:
        raise RunError(f"{run.folder} holds no versions of a prompt; name a run of groundrule learn-prompt")
    return History(run.folder, LearnerState.from_dict(run.state), read_spec(run.folder))
