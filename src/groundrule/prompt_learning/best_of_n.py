"""Best of n: whole playbooks are written n times, and the one that the judge likes best is kept.

The plain baseline. It sees the same evidence as `PromptLearner`, is held to the same lint, and its candidates stand in
the same judged groups under the frozen spec; but whichever has the best mean above 0 is believed. Nothing asks whether
that mean is more than luck, nor which of the candidate's lessons it comes from.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from groundrule._util.aio import or_raise, settle
from groundrule._util.seed import derive
from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Update
from groundrule.prompt_learning.evidence import Evidence
from groundrule.prompt_learning.playbook import Playbook
from groundrule.prompt_learning.rewriting import PlaybookWriter
from groundrule.prompt_learning.rounds import RoundLearner
from groundrule.prompt_learning.screening import Screen, Screened
from groundrule.prompt_learning.trial import Seen, seen
from groundrule.prompt_learning.versions import Version, gains_after

SIDE_BY_SIDE = 3
"""Candidates in one judged group beside the prompt that they would replace: with two answers each, eight members."""


@dataclass
class Rewritten:
    """One candidate, and how it did."""

    screened: Screened
    data: list[Seen] = field(default_factory=list)

    @property
    def playbook(self) -> Playbook:
        """What is left of it after the lint."""
        return self.screened.playbook

    @property
    def mean(self) -> float:
        """The mean difference to the prompt that it would replace; 0 without data."""
        return fmean(one.difference for one in self.data) if self.data else 0.0


@dataclass
class BestOfN(RoundLearner):
    """A `Learner`: `update` takes groups that were answered under `parent_prompt` and scored against the spec.

    The next round gathers new evidence under the winner, and starts from its lessons. Of `settings` it uses what counts
    as evidence, the attempts, the most scenarios of a test, and whether to ask for contradictions.
    """

    n: int = SIDE_BY_SIDE
    """Playbooks that are written in a round."""

    def __post_init__(self) -> None:
        super().__post_init__()
        asked = self.reflector if self.settings.check_contradictions else None
        self._screen = Screen(self.spec, self._leaks, self.state.ids, asked)

    async def update(self, groups: Sequence[TrajectoryGroup]) -> Update:
        """One round. Raises `JudgeError` or `LlmError` where the models give nothing usable; then nothing has
        changed."""
        evidence = self._evidence(groups)
        number = self.state.round + 1
        parent = self.parent
        candidates, refused = await self._written(evidence, number)
        await self._compare(candidates, number)
        best = max(candidates, key=lambda one: one.mean, default=None)
        winner = self._version(best, number) if best is not None and best.mean > 0 else None
        self.state.round = number
        self.record = _record(number, parent, evidence, refused, candidates, winner)
        counts = self._counts(
            evidence, refused=len(refused), tested=len(candidates), accepted=int(winner is not None)
        )
        return Update(self.policy, counts)

    async def _written(
        self, evidence: Evidence, number: int
    ) -> tuple[list[Rewritten], list[tuple[str, str]]]:
        """The candidates that differ from the parent and from each other, and what the lint took out of all."""
        writer, playbook = PlaybookWriter(self.reflector.judges, self.reflector.cache), self.parent.playbook
        seeds = [derive("rewrite", self.seed, number, copy) >> 32 for copy in range(self.n)]
        lists = or_raise(
            await settle([writer.lessons(self.spec, playbook, evidence, seed=seed) for seed in seeds])
        )
        found: dict[frozenset[str], Rewritten] = {}
        refused: dict[str, str] = {}
        for texts in lists:
            screened = await self._screen.screened(texts, playbook)
            refused |= dict(screened.refused)
            found.setdefault(_texts(screened.playbook), Rewritten(screened))
        found.pop(_texts(playbook), None)
        return list(found.values()), list(refused.items())

    async def _compare(self, candidates: Sequence[Rewritten], number: int) -> None:
        self.tested_groups = []
        order = list(self.scenarios)
        random.Random(derive("best of n", self.seed, number)).shuffle(order)
        used = order[: self.settings.looks_at(len(order))[-1]]
        for start in range(0, len(candidates), SIDE_BY_SIDE):
            batch = candidates[start : start + SIDE_BY_SIDE]
            prompts = [self.parent_prompt, *(one.playbook.below(self.spec) for one in batch)]
            groups = await self.trial.groups(prompts, used, "best of n", self.seed, number)
            self.tested_groups += groups
            for one, prompt in zip(batch, prompts[1:], strict=True):
                found = (seen(group, self.parent_prompt, prompt) for group in groups)
                one.data += [saw for saw in found if saw is not None]

    def _version(self, best: Rewritten, number: int) -> Version:
        parent = self.parent
        differences = {one.scenario_id: one.difference for one in best.data}
        version = Version(
            number=self.state.pool.next_number,
            playbook=best.playbook,
            parent=parent.number,
            how="best of n",
            round=number,
            test={"outcome": "accepted", "looks": [], "reason": _said(best)},
            gains=gains_after(parent, differences),
        )
        self.state.pool.only(version)
        self.state.parent = version.number
        return version


def _texts(playbook: Playbook) -> frozenset[str]:
    return frozenset(lesson.text for lesson in playbook.lessons)


def _said(one: Rewritten) -> str:
    return f"{one.mean:+.3f} on {len(one.data)} scenarios"


def _record(
    number: int,
    parent: Version,
    evidence: Evidence,
    refused: Sequence[tuple[str, str]],
    candidates: Sequence[Rewritten],
    winner: Version | None,
) -> dict[str, Any]:
    def entry(text: str) -> dict[str, Any]:
        return {"action": "rewrite", "lesson": None, "text": text}

    return {
        "round": number,
        "parent": parent.number,
        **evidence.to_dict(),
        "refused": [{"edit": entry(text), "reason": reason} for text, reason in refused],
        "tested": [
            {
                "edit": entry(" / ".join(lesson.text for lesson in one.playbook.lessons)),
                "outcome": "accepted" if winner and one.playbook is winner.playbook else "not the best",
                "looks": [],
                "reason": _said(one),
                "differences": {saw.scenario_id: saw.difference for saw in one.data},
            }
            for one in candidates
        ],
        "accepted": [winner.number] if winner else [],
    }
