"""Known-answer groups: the suite in `known.jsonl`, and files in the same form.

One group a line, as everywhere, with `labels` (see `labels`) and two optional entries in its metadata: `area`,
under which results are reported, and `series`, which joins groups that hold the same answers: under opposite
system prompts, where the order must turn round, or once more, where it must stay.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from groundrule._util import jsonl
from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import key_of
from groundrule.data.records import read_groups
from groundrule.data.trajectory import Trajectory
from groundrule.errors import DataError
from groundrule.rewards.suites.labels import Known, known_from

AREAS = {
    "grounding": "answers faithful to a passage, wordy, half invented, or ignoring it",
    "spec": "the same answers under opposite system prompts; the order must turn round",
    "style": "form, tone and length as the system prompt demands",
    "refusals": "declining what must be declined, and nothing else",
    "empty": "mere openers, echoes and nothing at all, which belong at the bottom",
    "injection": "answers and tool results that speak to the grader",
    "length": "padding under a length rule; long and wrong against short and right",
    "tools": "what tool calls did against what is said about them",
    "ties": "answers that are equally good",
    "twins": "the same answer twice, and the same group twice",
    "languages": "German and Spanish",
}
"""The areas of the built-in suite."""


@dataclass(frozen=True)
class KnownGroup:
    """A group and what is known of it."""

    name: str
    group: TrajectoryGroup
    known: Known
    area: str | None = None
    series: str | None = None

    def own_keys(self) -> list[str]:
        """What tells the members' own work apart, whatever the system prompt: equal keys, equal work."""
        return [key_of(_own(member)) for member in self.group]


@dataclass(frozen=True)
class LabelledFile:
    """The groups of a file that say what is known of them."""

    groups: list[KnownGroup]
    unlabelled: int = 0
    """Groups without labels; they cannot be measured and are left out."""


@functools.cache
def known_suite() -> Sequence[KnownGroup]:
    """The groups that come with the library."""
    with resources.as_file(resources.files("groundrule.rewards.suites").joinpath("known.jsonl")) as path:
        return tuple(read_labelled(path).groups)


def read_labelled(path: str | Path) -> LabelledFile:
    """Groups with labels, as `read_groups` reads them.

    Raises `DataError` with file, line, label and member; also where no group has labels, or where no two
    members of any group are of different rank.
    """
    groups = read_groups(path)
    found = [
        _known(group, Path(path), line)
        for line, group in zip(_first_lines(path), groups, strict=True)
        if group.labels
    ]
    if not groups:
        raise DataError("holds no groups", path=path)
    if not found:
        raise DataError(
            f"none of its {len(groups)} groups has labels; add what is known, such as 'labels': "
            "{'rank': [[0], [1, 2]]}, to each group",
            path=path,
        )
    if not any(one.known.ordered for one in found):
        raise DataError(
            "its labels call no member better than another, so there is no order to compare with", path=path
        )
    return LabelledFile(found, len(groups) - len(found))


def _known(group: TrajectoryGroup, path: Path, line: int) -> KnownGroup:
    try:
        known = known_from(group.labels or {}, len(group))
    except DataError as error:
        raise DataError(error.message, path=path, line=line, column=error.column) from error
    area, series = group.metadata.get("area"), group.metadata.get("series")
    return KnownGroup(
        group.scenario_id or f"line {line}",
        group,
        known,
        None if area is None else str(area),
        None if series is None else str(series),
    )


def _first_lines(path: str | Path) -> list[int]:
    """The line on which each group of the file begins; single trajectories of one scenario form one group."""
    lines: list[int] = []
    seen: set[str] = set()
    for line, record in jsonl.read(path):
        name = None if "trajectories" in record else record.get("scenario_id")
        if name is None or str(name) not in seen:
            lines.append(line)
        if name is not None:
            seen.add(str(name))
    return lines


def _own(member: Trajectory) -> list[dict[str, object]]:
    """The messages from the agent's first turn on."""
    turns = member.messages()
    start = next((i for i, turn in enumerate(turns) if turn.get("role") == "assistant"), len(turns))
    return turns[start:]
