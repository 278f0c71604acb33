"""The records that go into a run folder, checked; and whether two configurations are the same run."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from groundrule.errors import ConfigError, RunError

_MAY_GROW = ("steps", "train.steps", "learn.rounds")
_MAY_CHANGE = "judge.budget."
"""What may be spent decides how far a run gets, not which run it is."""


def plain(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record as JSON would give it back."""
    try:
        read_back: dict[str, Any] = json.loads(json.dumps(dict(record), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the record for the run folder cannot be written as JSON: {error}") from error
    return read_back


def checked_numbers(metrics: Mapping[str, float | None]) -> dict[str, float | None]:
    for name, value in metrics.items():
        if name == "step":
            raise ValueError("the metric name 'step' is taken by the step itself")
        if value is not None and not (isinstance(value, int | float) and math.isfinite(value)):
            raise ValueError(f"metric {name!r} is {value!r}; it must be a finite number, or None if unknown")
    return dict(metrics)


def check_config(folder: Path, old: dict[str, Any], new: dict[str, Any]) -> None:
    """Refuse a configuration that would make the resumed run another one."""
    before, after = dict(_flat(old)), dict(_flat(new))
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    differing = [name for name in names if not _is_allowed(name, before.get(name), after.get(name))]
    if differing:
        shown = "; ".join(f"{n} was {before.get(n)!r} and is {after.get(n)!r}" for n in differing)
        raise RunError(
            f"{folder} holds a run with another configuration: {shown}. Resuming needs the same "
            "configuration (only the number of steps or rounds may grow, and judge.budget may change): change it back, "
            "or use another folder."
        )


def _flat(record: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for name, value in record.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _is_allowed(name: str, old: Any, new: Any) -> bool:
    if name.startswith(_MAY_CHANGE):
        return True
    return name in _MAY_GROW and isinstance(old, int) and isinstance(new, int) and new > old
