"""Run: a folder of plain files that holds everything about one training.

    config.json                        the resolved configuration
    state.json                         {"version": 1, "step": 12, "state": {...}}: the last complete step
    metrics.jsonl                      one line a step: {"step": 12, "reward/mean": 0.41, ...}
    costs.jsonl                        one line a paid call
    trajectories/step-000012.jsonl     the groups of a step, one a line
    trajectories/step-000013.failed.jsonl   what stopped the run in a step that is not complete
    evaluations/step-000012.json       see `Evaluation`
    checkpoints/step-000012/           written by the trainer, renamed into place when complete
    report.html                        written by the viewer

A step is complete when `state.json` says so. It is written last, so after a crash at any moment
`Run.open` cuts everything back to that step, and the step is done again.
"""

from __future__ import annotations

import json
import os
import re
import weakref
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Self

from groundrule._util import jsonl
from groundrule._util.files import write_atomic
from groundrule.data._run_config import check_config, checked_numbers, plain
from groundrule.data._run_files import (
    VERSION,
    cut_back,
    cut_lines,
    locked,
    numbered,
    read_object,
    read_state,
    remove_folder,
    step_name,
)
from groundrule.data.evaluation import Evaluation
from groundrule.data.group import TrajectoryGroup
from groundrule.data.records import read_groups, write_groups
from groundrule.errors import ConfigError, RunError


class Run:
    """One run folder, held by one process at a time; close it, or use it in a `with` block."""

    def __init__(self, folder: Path, *, read_only: bool) -> None:
        """Use `Run.create`, `Run.open` or `Run.open_or_create`."""
        self.folder = folder
        self.read_only = read_only
        self.config: dict[str, Any] = {}
        self.step = 0
        """The last complete step; 0 before the first."""
        self.state: dict[str, Any] = {}
        """What the caller last committed beside the step, such as the best score so far."""
        self._unlock = (lambda: None) if read_only else weakref.finalize(self, os.close, locked(folder))

    @classmethod
    def create(cls, folder: str | Path, config: Mapping[str, Any]) -> Self:
        """A new run in a folder that holds none yet."""
        folder = Path(folder)
        if (folder / "state.json").exists():
            check_config(folder, read_object(folder / "config.json"), plain(config))
            raise RunError(
                f"{folder} already holds a run; resume it with Run.open_or_create, or use another folder"
            )
        if (folder / "metrics.jsonl").exists() or numbered(folder / "checkpoints"):
            raise RunError(
                f"{folder} holds parts of a run but no state.json; restore it, or use another folder"
            )
        wanted = plain(config)
        folder.mkdir(parents=True, exist_ok=True)
        run = cls(folder, read_only=False)
        run.config = wanted
        run._write("config.json", run.config)
        run._commit(0, {})
        return run

    @classmethod
    def open(cls, folder: str | Path, *, read_only: bool = False) -> Self:
        """An existing run at its last complete step. What a crash left of a later step is removed.

        `read_only` takes no lock, changes nothing and shows complete steps only.
        """
        folder = Path(folder)
        if not (folder / "state.json").exists():
            raise RunError(f"{folder} is not a run folder: it has no state.json")
        run = cls(folder, read_only=read_only)
        try:
            run.step, run.state = read_state(folder)
            run.config = read_object(folder / "config.json")
            if not read_only:
                cut_back(folder, run.step)
        except BaseException:
            run.close()
            raise
        return run

    @classmethod
    def open_or_create(cls, folder: str | Path, config: Mapping[str, Any]) -> Self:
        """Resume the run in the folder, or start one. Resuming needs the same configuration."""
        folder = Path(folder)
        if not (folder / "state.json").exists():
            return cls.create(folder, config)
        wanted = plain(config)
        check_config(folder, read_object(folder / "config.json"), wanted)
        run = cls.open(folder)
        if run.config != wanted:
            run.config = wanted
            run._write("config.json", wanted)
        return run

    def close(self) -> None:
        """Let other processes use the folder. Reading goes on to work."""
        self.read_only = True
        self._unlock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def next_step(self) -> int:
        """The step to do now; steps count from 1."""
        return self.step + 1

    @property
    def metrics_path(self) -> Path:
        return self.folder / "metrics.jsonl"

    @property
    def costs_path(self) -> Path:
        """For `Ledger(path=...)`."""
        return self.folder / "costs.jsonl"

    def trajectories_path(self, step: int) -> Path:
        return self.folder / "trajectories" / f"{step_name(step)}.jsonl"

    @property
    def failed_path(self) -> Path:
        """For the groups of a next step that could not be completed; the next try takes them away."""
        return self.folder / "trajectories" / f"{step_name(self.next_step)}.failed.jsonl"

    def checkpoint_folder(self, step: int) -> Path:
        """Where the checkpoint of a step stands, or will stand."""
        return self.folder / "checkpoints" / step_name(step)

    def evaluation_path(self, step: int, name: str = "") -> Path:
        return self.folder / "evaluations" / f"{step_name(step)}{'.' if name else ''}{name}.json"

    def record_step(
        self,
        step: int,
        groups: Iterable[TrajectoryGroup],
        metrics: Mapping[str, float | None],
        *,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        """Complete a step whose checkpoint is in place already, if it has one.

        `metrics` are numbers under path names; None means unknown. `state` replaces `self.state`.
        """
        if step != self.next_step:
            raise RunError(f"{self.folder}: step {step} cannot be recorded; the next one is {self.next_step}")
        line = {"step": step, **checked_numbers(metrics)}
        self._check_writable()
        write_groups(self.trajectories_path(step), groups)
        cut_lines(self.metrics_path, self.step)  # Left by a try of this step that failed in this process.
        jsonl.append(self.metrics_path, line)
        self._commit(step, self.state if state is None else plain(state))

    def keep_state(self, state: Mapping[str, Any]) -> None:
        """Replace what is kept beside the last complete step."""
        self._commit(self.step, plain(state))

    def write_evaluation(self, step: int, name: str, record: Evaluation | Mapping[str, Any]) -> Path:
        """Keep an evaluation of the policy after `step`; the main one has the name ""."""
        if not re.fullmatch(r"[\w-]*", name):
            raise ValueError(
                f"evaluation name {name!r} must be letters, digits, '-' and '_': it names a file"
            )
        if step > self.step:
            raise RunError(f"{self.folder}: step {step} cannot be evaluated before it is recorded")
        path = self.evaluation_path(step, name)
        self._write(path.relative_to(self.folder).as_posix(), plain(record))
        return path

    def metrics(self) -> list[dict[str, Any]]:
        """The metrics lines of the complete steps."""
        return self._lines(self.metrics_path)

    def costs(self) -> list[dict[str, Any]]:
        """The recorded calls."""
        return self._lines(self.costs_path)

    def groups(self, step: int) -> list[TrajectoryGroup]:
        """The groups of a complete step."""
        return read_groups(self.trajectories_path(step))

    def trajectory_steps(self) -> list[int]:
        """The complete steps whose groups are there, in order."""
        return [step for step, _ in numbered(self.folder / "trajectories") if step <= self.step]

    def evaluations(self, name: str = "") -> list[dict[str, Any]]:
        """The evaluations of that name, in the order of their steps."""
        found = [step for step, _ in numbered(self.folder / "evaluations") if step <= self.step]
        paths = [self.evaluation_path(step, name) for step in sorted(set(found))]
        return [read_object(path) for path in paths if path.exists()]

    def checkpoint_steps(self) -> list[int]:
        """The complete steps that have a checkpoint folder, in numeric order."""
        found = numbered(self.folder / "checkpoints")
        return [step for step, path in found if path.is_dir() and step <= self.step]

    def prune_checkpoints(self, *, keep_last: int = 3, best: int | None = None) -> list[int]:
        """Remove all checkpoints but the last few and the best; gives the steps that were removed."""
        if keep_last < 1:
            raise ConfigError(
                f"keep_last={keep_last} would remove the checkpoint to resume from; use at least 1"
            )
        self._check_writable()
        doomed = [step for step in self.checkpoint_steps()[:-keep_last] if step != best]
        for step in doomed:
            remove_folder(self.checkpoint_folder(step))
        return doomed

    def best_step(self, metric: str, *, more: Iterable[Mapping[str, Any]] = ()) -> int | None:
        """The step with the highest value of a metric; None when it was never recorded.

        `more` are further lines with a `step`, such as a program logged itself.
        """
        lines = [*self.metrics(), *more]
        known = [(line[metric], line["step"]) for line in lines if line.get(metric) is not None]
        return max(known)[1] if known else None

    def roll_back(self, step: int) -> None:
        """Go back to an earlier complete step; everything after it is removed."""
        if not 0 <= step <= self.step:
            raise RunError(f"{self.folder} is at step {self.step} and cannot be rolled back to {step}")
        self._commit(step, self.state)
        cut_back(self.folder, step)

    def _lines(self, path: Path) -> list[dict[str, Any]]:
        lines = [record for _, record in jsonl.read(path)] if path.exists() else []
        return [line for line in lines if line.get("step", 0) <= self.step]

    def _commit(self, step: int, state: dict[str, Any]) -> None:
        self._write("state.json", {"version": VERSION, "step": step, "state": state})
        self.step, self.state = step, state

    def _write(self, name: str, record: Any) -> None:
        self._check_writable()
        text = json.dumps(record, indent=2, ensure_ascii=True, allow_nan=False)
        write_atomic(self.folder / name, text + "\n")

    def _check_writable(self) -> None:
        if self.read_only:
            raise RunError(f"{self.folder} is closed, or was opened read-only; open it again to write")
