"""Groups as JSON lines: one group a line.

Three kinds of record are read, and told apart by their keys:

- `trajectories`: a group, as `write_groups` writes it;
- `messages_and_choices`: one trajectory;
- `messages`: one trajectory as other tools write it; the other keys mean the same.

Single trajectories that share a `scenario_id` form one group, in the order in which they first
appear; the others are groups of one. Unknown keys are kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from groundrule._util import jsonl
from groundrule.data.group import TrajectoryGroup
from groundrule.data.trajectory import Trajectory
from groundrule.errors import DataError

NO_REWARD = "the record has reward null"

_EMPTY_AS_ABSENT = ("metrics", "metadata", "logs", "additional_histories", "messages_and_choices")
"""Tables write null for what a row does not have; these fields take a value or their default."""


def read_groups(path: str | Path) -> list[TrajectoryGroup]:
    """All groups of a file. What cannot be read raises `DataError` with file, line and field."""
    groups: list[TrajectoryGroup] = []
    by_scenario: dict[str, TrajectoryGroup] = {}
    for line, record in jsonl.read(path):
        group, single = _read(record, Path(path), line)
        known = by_scenario.get(group.scenario_id) if single and group.scenario_id is not None else None
        if known is not None:
            known.trajectories.extend(group.trajectories)
            continue
        groups.append(group)
        if single and group.scenario_id is not None:
            by_scenario[group.scenario_id] = group
    return groups


def write_groups(path: str | Path, groups: Iterable[TrajectoryGroup]) -> None:
    """Replace the file by these groups, all or nothing."""
    jsonl.write(path, _records(groups))


def append_group(path: str | Path, group: TrajectoryGroup) -> None:
    """Add one group at the end of the file."""
    jsonl.append(path, group_record(group))


def group_record(group: TrajectoryGroup) -> dict[str, Any]:
    """The JSON object of one line. Reading it gives an equal group."""
    return group.model_dump(mode="json")


def _records(groups: Iterable[TrajectoryGroup]) -> Iterator[dict[str, Any]]:
    for group in groups:
        yield group_record(group)


def group_from(record: Any, *, path: str | Path, line: int) -> TrajectoryGroup:
    """The group of one record. What cannot be read raises `DataError` with file, line and field."""
    return _read(record, Path(path), line)[0]


def _read(record: Any, path: Path, line: int) -> tuple[TrajectoryGroup, bool]:
    """The group, and whether it came as a single trajectory."""
    if not isinstance(record, dict):
        raise DataError(
            f"holds {_shown(record)}; each line must be an object with trajectories or messages",
            path=path,
            line=line,
        )
    try:
        if isinstance(record.get("scenario_id"), int):
            record["scenario_id"] = str(record["scenario_id"])
        if "trajectories" in record:
            _check_list(record["trajectories"], path, line)
            return _group(record), False
        if "messages_and_choices" in record or "messages" in record:
            return _group_of_one(record), True
    except ValidationError as error:
        raise _located(error, record, path, line) from error
    raise DataError(
        f"has the keys {', '.join(map(repr, record)) or '(none)'}; a group needs 'trajectories', "
        "a single trajectory 'messages_and_choices' or 'messages'",
        path=path,
        line=line,
    )


def _check_list(members: Any, path: Path, line: int) -> None:
    if not isinstance(members, list):
        what = f"{_shown(members)} is not a list" + _REMEDIES["trajectories"]
        raise DataError(what, path=path, line=line, column="trajectories")


def _group(record: Mapping[str, Any]) -> TrajectoryGroup:
    fields = {k: v for k, v in record.items() if v is not None or k not in (*_EMPTY_AS_ABSENT, "exceptions")}
    return TrajectoryGroup.model_validate(
        {**fields, "trajectories": [_fields(t) for t in fields["trajectories"]]}
    )


def _group_of_one(record: Mapping[str, Any]) -> TrajectoryGroup:
    fields = _fields(record)
    scenario_id = fields.pop("scenario_id", None)
    if "messages_and_choices" not in fields:
        fields["messages_and_choices"] = fields.pop("messages", None)
    return TrajectoryGroup([Trajectory.model_validate(fields)], scenario_id=scenario_id)


def _fields(trajectory: Any) -> Any:
    """A trajectory's fields, with nulls taken as absent; a reward of null means that it is unscored."""
    if not isinstance(trajectory, Mapping):
        return trajectory
    fields = {k: v for k, v in trajectory.items() if v is not None or k not in _EMPTY_AS_ABSENT}
    if "reward" in fields and fields["reward"] is None:
        del fields["reward"]
        fields["unscored"] = fields.get("unscored") or NO_REWARD
    return fields


def _located(error: ValidationError, record: Mapping[str, Any], path: Path, line: int) -> DataError:
    """The first thing wrong, with the field as the file spells it and what to write instead."""
    first = error.errors(include_url=False)[0]
    names = _names(first["loc"], record)
    if first["type"] == "value_error":  # Our own message; it has its remedy.
        what = str(first["msg"]).removeprefix("Value error, ")
    else:
        remedy = next((_REMEDIES[name] for name in reversed(names) if name in _REMEDIES), "")
        what = f"{_shown(first['input'])} {str(first['msg']).removeprefix('Input ')}{remedy}"
    return DataError(what, path=path, line=line, column=".".join(names) or None)


def _names(location: tuple[int | str, ...], record: Mapping[str, Any]) -> list[str]:
    names = [str(part) for part in location]
    if names and names[-1] in ("float", "int", "bool", "str"):
        names.pop()  # The branch of a union, not a key of the file.
    if "trajectories" not in record and "messages_and_choices" not in record:
        names = ["messages" if name == "messages_and_choices" else name for name in names]
    return names


_MESSAGES = '; write a list of {"role": ..., "content": ...} objects'
_REMEDIES = {
    "messages": _MESSAGES,
    "messages_and_choices": _MESSAGES,
    "metadata": "; write an object of plain values",
    "metrics": "; write an object of numbers",
    "reward": "; write a number, or null with the reason in 'unscored'",
    "trajectories": "; write a list of trajectories",
}


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
