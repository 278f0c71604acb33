"""One person at work: what is asked next, and a file that grows by one line with each judgement."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from groundrule._util.files import sync
from groundrule.data.preference_records import append_ranking, ranking_from, read_rankings
from groundrule.data.preferences import Ranking
from groundrule.errors import ConfigError, DataError
from groundrule.ranking.tasks import Mode, Task, is_answered, tasks_for


class Session:
    """Asks for every task that this person has not answered in the file. Skipped ones come again at the end.

    The file is held by one session at a time. `seed` None: the one that this person began with, or 0.
    """

    def __init__(
        self, asked: Iterable[Ranking], out: Path, *, annotator: str, mode: Mode, seed: int | None = None
    ) -> None:
        self.out, self.annotator, self.mode = out, annotator, mode
        self._handle = _held(out)
        try:
            said = [r for r in _read(out) if r.annotator == annotator]
            self.seed = _seed(said, seed, out, annotator)
            self.tasks = tasks_for(asked, mode=mode, annotator=annotator, seed=self.seed)
            by_prompt: dict[str, list[Ranking]] = {}
            for ranking in said:
                by_prompt.setdefault(ranking.prompt_key, []).append(ranking)
            self._done = {t.key for t in self.tasks if is_answered(t, by_prompt.get(t.asked.prompt_key, []))}
        except BaseException:
            self.close()
            raise
        self._skipped: list[str] = []
        self._undoable: list[tuple[Literal["skip", "judge"], list[str]]] = []
        """What was done since the start, latest last, with what was skipped before."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let others write to the file. One in which nothing was judged is taken away."""
        if os.fstat(self._handle).st_size == 0:
            self.out.unlink(missing_ok=True)
        os.close(self._handle)

    @property
    def done(self) -> int:
        """How many tasks this person has answered."""
        return len(self._done)

    @property
    def skipped(self) -> int:
        """How many tasks wait for later."""
        return len(self._skipped)

    @property
    def can_undo(self) -> bool:
        """Whether there is something to take back."""
        return bool(self._undoable) or self._last_said() is not None

    def current(self) -> Task | None:
        """The task to show; None when all are answered."""
        open_ = {t.key: t for t in self.tasks if t.key not in self._done}
        first = next((key for key in open_ if key not in self._skipped), None)
        return open_[first or self._skipped[0]] if open_ else None

    def judge(self, key: str, tiers: Sequence[Sequence[int]]) -> None:
        """Save what the person said about the task that is shown, best first, by the positions shown."""
        task = self._shown(key)
        places = [i for tier in tiers for i in tier]
        if sorted(places) != list(range(len(task.answers))) or not all(tiers):
            raise DataError(
                f"the order {[list(t) for t in tiers]} does not have each of 0 to {len(task.answers) - 1} once"
            )
        append_ranking(
            self.out, task.ranking(tiers, annotator=self.annotator, seed=self.seed, mode=self.mode)
        )
        self._undoable.append(("judge", self._skipped))
        self._done.add(key)
        self._skipped = [k for k in self._skipped if k != key]

    def skip(self, key: str) -> None:
        """Ask again when the others are answered."""
        self._shown(key)
        self._undoable.append(("skip", self._skipped))
        self._skipped = [*(k for k in self._skipped if k != key), key]

    def undo(self) -> bool:
        """Take back what was skipped or judged last, also of an earlier session. False: there is nothing."""
        kind, skipped = self._undoable[-1] if self._undoable else ("judge", self._skipped)
        if kind == "judge":
            last = self._last_said()
            if last is None:
                return False
            key, start = last
            os.truncate(self.out, start)
            sync(self.out)
            self._done.remove(key)
        self._skipped = skipped
        self._undoable = self._undoable[:-1]
        return True

    def _shown(self, key: str) -> Task:
        task = self.current()
        if task is None or task.key != key:
            raise ConfigError("another task is shown by now; load the page again")
        return task

    def _last_said(self) -> tuple[str, int] | None:
        """The task of the file's last line, and where the line begins, if this person answered a task there."""
        raw = self.out.read_bytes()
        start = raw.rfind(b"\n", 0, len(raw) - 1) + 1
        if not raw.endswith(b"\n") or not raw[start:].strip():
            return None
        last = ranking_from(json.loads(raw[start:]), path=self.out, line=raw.count(b"\n"))
        if last.annotator != self.annotator or "rank" not in last.metadata:
            return None
        keys = {answer.key for answer in last.answers}
        for task in self.tasks:
            if task.key in self._done and keys == {a.key for a in task.answers} and is_answered(task, [last]):
                return task.key, start
        return None


def _held(out: Path) -> int:
    """The open file, there and locked: two sessions would take each other's lines back."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(out, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise DataError(
            f"cannot be written: {error.strerror}; name another file with --out", path=out
        ) from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        raise DataError(
            "another `groundrule rank` writes to it; stop that one, or name another file with --out", path=out
        ) from error
    sync(out.parent)
    return handle


def _read(out: Path) -> list[Ranking]:
    return read_rankings(out) if out.stat().st_size else []


def _seed(said: Sequence[Ranking], wanted: int | None, out: Path, annotator: str) -> int:
    kept = [r.metadata["rank"].get("seed") for r in said if isinstance(r.metadata.get("rank"), dict)]
    before = next((seed for seed in kept if type(seed) is int), None)
    if before is not None and wanted not in (None, before):
        raise ConfigError(
            f"--seed is {wanted}, but {annotator!r} began {out} with seed {before}, and a session goes on in the order "
            "in which it began; leave --seed out, or name another file with --out"
        )
    return before if before is not None else (wanted or 0)
