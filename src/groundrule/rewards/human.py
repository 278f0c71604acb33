"""A reward may come from people: rankings in a file, as a scorer of groups.

One annotator's value of an answer is the share of its comparisons that it won; a ranking compares each answer with
every other one and a tie counts half. So four answers in order get 1, 2/3, 1/3 and 0; tied answers share the mean of
their places; where all are tied, all get 0.5. Every two of four compared one by one give the same as the ranking that
they make. A certainty of 0.8 makes a victory 0.8 and a defeat 0.2. The score is the mean over annotators.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any, Self

from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import conversation_key
from groundrule.data.preference_records import read_rankings
from groundrule.data.preferences import Ranking
from groundrule.data.score import Score
from groundrule.errors import ConfigError


@dataclass
class _Record:
    """One annotator's comparisons of one answer."""

    won: float = 0.0
    compared: int = 0

    def add(self, share: float) -> None:
        self.won += share
        self.compared += 1


class HumanScorer:
    """Scores the answers that people ranked; answers are known by their content, prompt and tools included.

    A score says how an answer stood among those that it was compared with, whoever else is in the group.
    """

    def __init__(self, rankings: Iterable[Ranking], *, name: str = "the rankings") -> None:
        self.name = name
        self._records: dict[str, dict[str | None, _Record]] = {}
        for ranking in rankings:
            self._add(ranking)

    @classmethod
    def from_file(cls, path: str | Path) -> Self:
        """Of a file that `groundrule rank` wrote, or any other file of preferences."""
        return cls(read_rankings(path), name=str(path))

    async def score(self, group: TrajectoryGroup) -> list[Score]:
        """One score a member; no score for what nobody ranked."""
        found = [self._records.get(conversation_key(t.messages(), t.tools), {}) for t in group.trajectories]
        ranked = sum(bool(records) for records in found)
        return [self._score(records, f"{ranked} of {len(found)}") for records in found]

    def _add(self, ranking: Ranking) -> None:
        keys = [conversation_key([*ranking.prompt, *a.messages], ranking.tools) for a in ranking.answers]
        records = [self._records.setdefault(k, {}).setdefault(ranking.annotator, _Record()) for k in keys]
        place = {i: tier for tier, members in enumerate(ranking.tiers) for i in members}
        for a, b in combinations(range(len(records)), 2):
            sure = ranking.certainty
            share = 0.5 if place[a] == place[b] else sure if place[a] < place[b] else 1 - sure
            records[a].add(share)
            records[b].add(1 - share)

    def _score(self, records: Mapping[str | None, _Record], ranked: str) -> Score:
        if not records:
            return Score.none(
                f"nobody ranked this answer in {self.name}, which has {ranked} answers of its group; "
                "let `groundrule rank` ask for it"
            )
        values = [record.won / record.compared for record in records.values()]
        compared = sum(record.compared for record in records.values())
        who = "1 person" if len(values) == 1 else f"{len(values)} people"
        return Score(
            value=fmean(values),
            explanation=f"won {fmean(values):.0%} of {compared} comparisons by {who}, ties counted half",
            parts={
                "annotators": float(len(values)),
                "comparisons": float(compared),
                "annotator_std": pstdev(values),
            },
            cost=0.0,
        )


def human_judge(file: str, params: Mapping[str, Any] | None = None) -> HumanScorer:
    """The judge `human/FILE`; it takes no parameters."""
    if not file:
        raise ConfigError("'human' names no file; write 'human/RANKINGS.jsonl'")
    if params:
        raise ConfigError(f"human/{file} got {', '.join(map(repr, params))}; it takes no parameters")
    return HumanScorer.from_file(file)
