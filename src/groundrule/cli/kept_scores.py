"""Scores on the disk as soon as they are known: an interrupted `groundrule verify` goes on behind them."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from groundrule._util import jsonl
from groundrule._util.digest import digest_of
from groundrule.data.score import Score, Scores

_SCORES, _COSTS = "scores.jsonl", "costs.jsonl"


class KeptScores:
    """A folder beside the file that is scored, for as long as not all of it is.

    `made_from` is what scores depend on beside their record: which verifier, which judge.
    """

    def __init__(self, folder: Path, made_from: Mapping[str, Any]) -> None:
        self.folder = folder
        self._made_from = dict(made_from)
        self._path = folder / _SCORES
        lines = jsonl.read(self._path) if self._path.exists() else ()
        self._known = {line["key"]: _scores(line) for _, line in lines}

    @property
    def costs(self) -> Path:
        """For the ledger."""
        return self.folder / _COSTS

    def of(self, record: Any) -> Scores | None:
        """Those of an earlier try; None where there are none."""
        return self._known.get(self._key(record))

    def add(self, record: Any, scores: list[Score]) -> None:
        """Keep those of a record."""
        metrics = scores.metrics if isinstance(scores, Scores) else {}
        said = [score.model_dump(mode="json") for score in scores]
        jsonl.append(self._path, {"key": self._key(record), "scores": said, "metrics": metrics})

    def remove(self) -> None:
        """When all is done and written."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _key(self, record: Any) -> str:
        return digest_of([record, self._made_from])


def _scores(line: Mapping[str, Any]) -> Scores:
    return Scores([Score.model_validate(one) for one in line["scores"]], metrics=line["metrics"])
