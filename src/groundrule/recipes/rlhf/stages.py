"""Stages that are done stay done: a file each, with what it was made from and what came out."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from groundrule._util.files import write_atomic
from groundrule.errors import RunError

Work = Callable[[], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class Stages:
    """The stage files of a chain's folder."""

    folder: Path
    order: Sequence[str]
    """Each depends on those before it. What else one leaves is a folder of its name."""
    report: Callable[[str], None]

    async def do(self, name: str, made_from: Mapping[str, Any], work: Work) -> dict[str, Any]:
        """What the stage gave, now or earlier.

        Raises `RunError` where it was done from something else, naming what differs.
        """
        known = self._result(name, made_from)
        if known is not None:
            self.report(f"{name}: done ({self.path(name)})")
            return known
        self.report(f"{name}: begins")
        started = time.monotonic()
        result = await work()
        seconds = round(time.monotonic() - started, 1)
        self.report(f"{name}: done in {seconds:.0f} s")
        record = {"made_from": _plain(made_from), "result": _plain({**result, "seconds": seconds})}
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomic(self.path(name), json.dumps(record, indent=2, ensure_ascii=False) + "\n")
        return dict(record["result"])

    def is_done(self, name: str) -> bool:
        """Whether the stage has left its file."""
        return self.path(name).exists()

    def path(self, name: str) -> Path:
        """Where the stage's file stands."""
        return self.folder / f"{name}.json"

    def _result(self, name: str, made_from: Mapping[str, Any]) -> dict[str, Any] | None:
        if not self.is_done(name):
            return None
        record = self._read(self.path(name))
        before, now = record["made_from"], _plain(made_from)
        differing = next((key for key in {**before, **now} if before.get(key) != now.get(key)), None)
        if differing is not None:
            raise RunError(
                f"{self.path(name)} was made with {differing} = {_short(before.get(differing))}, and the configuration "
                f"says {_short(now.get(differing))}; change it back, use another folder, or remove {self.path(name)} "
                f"and what came of it ({', '.join(self._came_of(name)) or 'nothing yet'}) to make it anew"
            )
        result: dict[str, Any] = record["result"]
        return result

    def _came_of(self, name: str) -> list[str]:
        """What this stage and those after it have left beside its own file."""
        later = self.order[self.order.index(name) :]
        files = [f"{stage}.json" for stage in later[1:] if self.is_done(stage)]
        return files + [f"{stage}/" for stage in later if (self.folder / stage).is_dir()]

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            record: dict[str, Any] = json.loads(path.read_text("utf-8"))
            record["made_from"], record["result"]
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise RunError(f"{path} is no stage file ({error}); remove it to do the stage again") from error
        return record


def settings_under(config: BaseModel, *names: str) -> dict[str, Any]:
    """The values of a configuration whose dotted names begin with one of these."""
    dumped = config.model_dump(mode="json")
    flat = {f"{s}.{key}": value for s, values in dumped.items() for key, value in (values or {}).items()}
    return {key: value for key, value in flat.items() if key.startswith(names)}


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(dict(value), allow_nan=False))
    return plain


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."
