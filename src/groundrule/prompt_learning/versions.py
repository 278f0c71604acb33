"""Accepted playbooks: where each comes from, what it was tested on, and which of them to go on from.

Each version was better than its parent in a test. Versions that are best on some scenarios stay in the pool even where
another is better on average (Pareto selection, as in GEPA, Agrawal et al. 2025): the next parent is drawn among them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any

from groundrule._util.seed import derive
from groundrule.errors import ConfigError
from groundrule.prompt_learning.edits import Edit
from groundrule.prompt_learning.playbook import Playbook


@dataclass(frozen=True)
class Version:
    """A playbook that was accepted, and why."""

    number: int
    playbook: Playbook
    parent: int | None = None
    how: str = "start"
    """`start`, `test`, `merge`, `absorbed` (removed after weights were trained), `hand` (a person's edit) or
    `rollback`."""
    round: int = 0
    edit: Edit | None = None
    lesson: str | None = None
    """The id of the lesson that was touched."""
    evidence: tuple[Mapping[str, Any], ...] = ()
    """The contrasts that caused it, with the judge's words."""
    test: Mapping[str, Any] | None = None
    """How its test went; see `acceptance.Standing`."""
    gains: Mapping[str, float] = field(default_factory=dict)
    """By scenario of the tests: what it gained on the start, added up along its line."""

    @property
    def gain(self) -> float:
        """On average; 0 where nothing was tested."""
        return fmean(self.gains.values()) if self.gains else 0.0

    def to_dict(self) -> dict[str, Any]:
        """For files."""
        return {
            **asdict(self),
            "playbook": self.playbook.to_dict(),
            "edit": self.edit.to_dict() if self.edit else None,
            "evidence": [dict(one) for one in self.evidence],
            "gains": dict(self.gains),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Version:
        """From a file."""
        return cls(
            **{
                **record,
                "playbook": Playbook.from_dict(record["playbook"]),
                "edit": Edit.from_dict(record["edit"]) if record["edit"] else None,
                "evidence": tuple(record["evidence"]),
            }
        )


@dataclass
class Pool:
    """All versions of a run, and those that are gone on from."""

    versions: list[Version] = field(default_factory=lambda: [Version(0, Playbook())])
    live: list[int] = field(default_factory=lambda: [0])
    """Numbers of those that a new edit may start from."""
    size: int = 8

    @property
    def head(self) -> Version:
        """The one to ship: of the live ones that with the highest gain, the newest of equal ones."""
        return max(self._live(), key=lambda version: (version.gain, version.number))

    @property
    def next_number(self) -> int:
        """Of the next version."""
        return self.versions[-1].number + 1

    def __getitem__(self, number: int) -> Version:
        for version in self.versions:
            if version.number == number:
                return version
        raise ConfigError(
            f"there is no version {number}; versions are 0 to {self.versions[-1].number}, see groundrule prompt log"
        )

    def add(self, version: Version) -> None:
        """An accepted version. Where the pool is full, of those that are best nowhere the weakest goes."""
        self.versions.append(version)
        self.live.append(version.number)
        while len(self.live) > self.size:
            wins = self.wins()
            weakest = min(self._live(), key=lambda v: (wins[v.number], v.gain, v.number))
            self.live.remove(weakest.number)

    def count(self, lesson: str, *, helpful: int, harmful: int) -> None:
        """What a test showed of a lesson, noted in every version that has it."""
        self.versions = [
            replace(v, playbook=v.playbook.counted(lesson, helpful=helpful, harmful=harmful))
            for v in self.versions
        ]

    def only(self, version: Version) -> None:
        """Go on from this version alone: what was learned beside it is kept in the history and nowhere else."""
        self.versions.append(version)
        self.live = [version.number]

    def wins(self) -> dict[int, int]:
        """On how many scenarios each live version is the best, ties counting for all."""
        live = self._live()
        scenarios = sorted({name for version in live for name in version.gains})
        wins = dict.fromkeys((version.number for version in live), 0)
        for name in scenarios:
            best = max(version.gains.get(name, 0.0) for version in live)
            for version in live:
                wins[version.number] += version.gains.get(name, 0.0) == best
        return wins

    def draw_parent(self, *seed: object) -> Version:
        """One of those that are best somewhere, in proportion to on how many scenarios; the head where none is."""
        wins = {number: count for number, count in self.wins().items() if count}
        if not wins:
            return self.head
        rng = random.Random(derive("parent", *seed))
        return self[rng.choices(list(wins), weights=list(wins.values()))[0]]

    def line_of(self, number: int) -> list[Version]:
        """From the start to this version."""
        line = [self[number]]
        while (parent := line[-1].parent) is not None:
            line.append(self[parent])
        return line[::-1]

    def to_dict(self) -> dict[str, Any]:
        """For files."""
        return {"versions": [v.to_dict() for v in self.versions], "live": self.live, "size": self.size}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Pool:
        """From a file."""
        return cls([Version.from_dict(v) for v in record["versions"]], list(record["live"]), record["size"])

    def _live(self) -> Sequence[Version]:
        return [version for version in self.versions if version.number in self.live]


def gains_after(parent: Version, differences: Mapping[str, float]) -> dict[str, float]:
    """What a child gained on the start: its parent's gains and, where it was tested, the difference to the parent."""
    names = {**parent.gains, **differences}
    return {name: parent.gains.get(name, 0.0) + differences.get(name, 0.0) for name in names}
