"""The ploys of a hunt on the disk, each written when it is known, so that an interrupted hunt goes on behind them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from groundrule._util import jsonl
from groundrule._util.digest import digest_of
from groundrule.data.scenario import Scenario
from groundrule.data.score import Score
from groundrule.rewards.universal.ploys import Hunt, Ploy


class HuntLog:
    """A file of ploys. Those of other settings, or of a scenario that has changed, stay in it and are not gone on with.

    `made_from` is what the ploys depend on beside their scenarios: who writes, who verifies, the seed.
    """

    def __init__(self, path: Path, scenarios: Sequence[Scenario], made_from: Mapping[str, Any]) -> None:
        self.path = path
        self._places = {scenario.id: place for place, scenario in enumerate(scenarios)}
        self._keys = {scenario.id: _key(scenario, made_from) for scenario in scenarios}
        by_id = {scenario.id: scenario for scenario in scenarios}
        self.ploys: list[Ploy] = [
            _ploy(record, by_id[record["scenario_id"]])
            for _, record in (jsonl.read(path) if path.exists() else ())
            if record["key"] == self._keys.get(record["scenario_id"])
        ]

    def add(self, ploy: Ploy) -> None:
        """Keep one."""
        jsonl.append(self.path, {"key": self._keys[ploy.scenario.id], **_record(ploy)})
        self.ploys.append(ploy)

    def found(self) -> Hunt:
        """All of them, by round and scenario, whatever was known first."""
        return Hunt(tuple(sorted(self.ploys, key=lambda p: (p.round, self._places[p.scenario.id], p.role))))


def _key(scenario: Scenario, made_from: Mapping[str, Any]) -> str:
    return digest_of([scenario.model_dump(mode="json"), dict(made_from)])


def _record(ploy: Ploy) -> dict[str, Any]:
    return {
        "scenario_id": ploy.scenario.id,
        "round": ploy.round,
        "role": ploy.role,
        "answer": ploy.answer,
        "flaw": ploy.flaw,
        "is_right": ploy.is_right,
        "truth_by": ploy.truth_by,
        "score": ploy.score.model_dump(mode="json"),
    }


def _ploy(record: Mapping[str, Any], scenario: Scenario) -> Ploy:
    return Ploy(
        scenario=scenario,
        round=record["round"],
        role=record["role"],
        answer=record["answer"],
        flaw=record["flaw"],
        is_right=record["is_right"],
        truth_by=record["truth_by"],
        score=Score.model_validate(record["score"]),
    )
