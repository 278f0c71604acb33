"""Accepted playbooks: where each comes from, what it was tested on, and which of them to go on from.

Each version was better than its parent in a test. Versions that are best on some scenarios stay in the pool even where
another is better on average (Pareto selection, as in GEPA, Agrawal et al. 2025): the next parent is drawn among them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean, pstdev
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
    """`start`, `test`, `same test` (passed together with the version before), `absorbed` (removed after weights were
    trained), `hand` (a person's edit), `rollback`, or the name of another method."""
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
        """An accepted version. From a full pool the one that is best on fewest scenarios goes, never the head."""
        self.versions.append(version)
        self.live.append(version.number)
        while len(self.live) > self.size:
            wins = self.wins()
            others = [v for v in self._live() if v.number != self.head.number]
            weakest = min(others, key=lambda v: (wins[v.number], v.gain, v.number))
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
        """On how many scenarios each live version is the best, ties counting for all.

        One scenario's gain rests on a few answers, so a version that another one was shown to improve on wins a
        scenario only where it is ahead of that one by more than twice the spread of the gains between them.
        """
        live = self._live()
        scenarios = sorted({name for version in live for name in version.gains})
        return {one.number: sum(self._wins(one, name, live) for name in scenarios) for one in live}

    def _wins(self, one: Version, name: str, live: Sequence[Version]) -> bool:
        return all(
            one.gains.get(name, 0.0) - other.gains.get(name, 0.0) >= self._lead_over(other, one)
            for other in live
            if other is not one
        )

    def _lead_over(self, other: Version, one: Version) -> float:
        """What `one` must be ahead by: 0, unless the other one comes from it."""
        if one not in self.line_of(other.number):
            return 0.0
        steps = [gain - one.gains.get(name, 0.0) for name, gain in other.gains.items()]
        return 2.0 * pstdev(steps) if steps else 0.0

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
        versions = [version.to_dict() for version in self.versions]
        return {"versions": versions, "live": list(self.live), "head": self.head.number, "size": self.size}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Pool:
        """From a file."""
        return cls([Version.from_dict(v) for v in record["versions"]], list(record["live"]), record["size"])

    def _live(self) -> Sequence[Version]:
        return [version for version in self.versions if version.number in self.live]


def gains_after(parent: Version, differences: Mapping[str, float]) -> dict[str, float]:
    """What a child gained on the start: its parent's gains and the differences to the parent.

    Where one of the two was not tested its mean stands in, so that a child that was shown to be better has gained more
    than its parent, on whatever scenarios the two were tested.
    """
    names = {**parent.gains, **differences}
    mean = fmean(differences.values()) if differences else 0.0
    return {name: parent.gains.get(name, parent.gain) + differences.get(name, mean) for name in names}
