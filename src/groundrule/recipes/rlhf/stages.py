"""Stages that are done stay done: a file each, with what it was made from and what came out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from groundrule._util.files import write_atomic
from groundrule.errors import RunError

STAGES = ("answers", "rankings", "reward-model", "ppo", "dpo", "evaluation")
"""In order. Each depends on those before it."""


class Stages:
    """The stage files of a chain's folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def result(self, name: str, made_from: Mapping[str, Any]) -> dict[str, Any] | None:
        """What the stage gave; None where it is still to be done.

        Raises `RunError` where it was done from something else, naming what differs.
        """
        path = self.path(name)
        if not path.exists():
            return None
        record = self._read(path)
        before, now = record["made_from"], _plain(made_from)
        differing = [key for key in {**before, **now} if before.get(key) != now.get(key)]
        if differing:
            key = differing[0]
            raise RunError(
                f"{path} was made with {key} = {_short(before.get(key))}, and the configuration says "
                f"{_short(now.get(key))}; change it back, use another folder, or remove {path} and the stages after "
                f"it ({', '.join(STAGES[STAGES.index(name) + 1 :]) or 'none'}) to make them anew"
            )
        result: dict[str, Any] = record["result"]
        return result

    def write(self, name: str, made_from: Mapping[str, Any], result: Mapping[str, Any]) -> dict[str, Any]:
        """The stage is done."""
        record = {"made_from": _plain(made_from), "result": _plain(result)}
        self.folder.mkdir(parents=True, exist_ok=True)
        write_atomic(self.path(name), json.dumps(record, indent=2, ensure_ascii=False) + "\n")
        return dict(record["result"])

    def path(self, name: str) -> Path:
        """Where the stage's file stands."""
        return self.folder / f"{name}.json"

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            record: dict[str, Any] = json.loads(path.read_text("utf-8"))
            record["made_from"], record["result"]
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise RunError(f"{path} is no stage file ({error}); remove it to do the stage again") from error
        return record


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps(dict(value), allow_nan=False))
    return plain


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:77]}..."
