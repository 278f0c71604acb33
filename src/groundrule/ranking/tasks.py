"""What a person is asked: which answers to one prompt, and in which order they are shown.

A task is a set of different answers to one prompt. Ordering asks for all answers of a group at once, comparing for
every two of them.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Literal

from groundrule._util import jsonl
from groundrule._util.seed import derive
from groundrule.data.answers import Answer
from groundrule.data.group import TrajectoryGroup
from groundrule.data.judged_rankings import rankings_from_groups
from groundrule.data.preference_records import read_rankings
from groundrule.data.preferences import Ranking
from groundrule.data.records import read_groups
from groundrule.data.runs import Run
from groundrule.errors import DataError

Mode = Literal["order", "compare"]


@dataclass(frozen=True)
class Source:
    """What a file asks about. The order of `asked` means nothing: who gave it is not to be seen."""

    asked: list[Ranking]
    left_out: list[str]
    """A line for each kind of thing that nobody can be asked about."""


@dataclass(frozen=True)
class Task:
    """Answers in the order in which one person sees them."""

    key: str
    """Equal exactly for the same answers to the same prompt."""
    asked: Ranking
    answers: tuple[Answer, ...]

    def ranking(self, tiers: Sequence[Sequence[int]], *, annotator: str, seed: int, mode: Mode) -> Ranking:
        """What the person said, best first, by positions in `answers`. The answers stay in the order shown."""
        return Ranking(
            prompt=self.asked.prompt,
            answers=list(self.answers),
            order=[[self.answers[i].id for i in tier] for tier in tiers],
            annotator=annotator,
            source="human",
            tools=self.asked.tools,
            scenario_id=self.asked.scenario_id,
            metadata={"rank": {"mode": mode, "seed": seed}},
        )


def read_source(path: Path) -> Source:
    """The groups of a run folder or a file, or the rankings of a file. `DataError` where there is nothing to ask."""
    if path.is_dir():
        run = Run.open(path, read_only=True)
        source = _of_groups([group for step in run.trajectory_steps() for group in run.groups(step)])
    elif _holds_preferences(path):
        source = Source(read_rankings(path), [])
    else:
        source = _of_groups(read_groups(path))
    if not source.asked:
        why = "".join(f"; left out: {line}" for line in source.left_out)
        raise DataError(
            f"holds no two different answers to one prompt{why}; give a run folder, or a file of groups or rankings",
            path=path,
        )
    return source


def tasks_for(asked: Iterable[Ranking], *, mode: Mode, annotator: str, seed: int) -> list[Task]:
    """Each set of answers once, in the order of the file; the answers are shuffled by seed, person and content."""
    tasks: dict[str, Task] = {}
    for ranking in asked:
        everything = _task(ranking, ranking.answers, annotator, seed)
        parts = [everything]
        if mode == "compare":
            parts = [_task(ranking, two, annotator, seed) for two in combinations(everything.answers, 2)]
            random.Random(derive("pairs", seed, annotator, everything.key)).shuffle(parts)
        for task in parts:
            tasks.setdefault(task.key, task)
    return list(tasks.values())


def is_answered(task: Task, said: Iterable[Ranking]) -> bool:
    """Whether one of these rankings has all answers of the task."""
    wanted = {answer.key for answer in task.answers}
    return any(
        ranking.prompt_key == task.asked.prompt_key and wanted <= {a.key for a in ranking.answers}
        for ranking in said
    )


def _task(asked: Ranking, answers: Iterable[Answer], annotator: str, seed: int) -> Task:
    # Scores are the judge's, not this person's.
    plain = sorted((a.model_copy(update={"score": None}) for a in answers), key=lambda a: a.key)
    content = "\x1e".join([asked.prompt_key, *(a.key for a in plain)])
    key = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:24]
    random.Random(derive("answers", seed, annotator, key)).shuffle(plain)
    return Task(key, asked, tuple(plain))


def _of_groups(groups: Iterable[TrajectoryGroup]) -> Source:
    found = rankings_from_groups(map(_without_scores, groups), margin=0)
    return Source(found.rankings, found.left_out)


def _without_scores(group: TrajectoryGroup) -> TrajectoryGroup:
    """All members alike, those without a score too."""
    return group.with_members(t.model_copy(update={"reward": 0.0, "unscored": None}) for t in group)


def _holds_preferences(path: Path) -> bool:
    record = next((record for _, record in jsonl.read(path)), None)
    return isinstance(record, dict) and ("chosen" in record or "answers" in record or "order" in record)
