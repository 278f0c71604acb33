"""PromptLearner: scored groups in, a better prompt out.

A `Learner` like the LoRA trainer. Each round it collects what judges find wrong again and again, asks a reflection
model for a few edits of the playbook, refuses those that no test is worth, and tests the others blind, beside the
prompt that they change, on scenarios that gave no evidence. What is better beyond doubt is kept, each as a new version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Update
from groundrule.prompt_learning.edits import Edit
from groundrule.prompt_learning.evidence import Evidence
from groundrule.prompt_learning.joining import TestedEdit, joined
from groundrule.prompt_learning.lint import refusal_of
from groundrule.prompt_learning.playbook import Playbook
from groundrule.prompt_learning.rounds import RoundLearner
from groundrule.prompt_learning.state import Proposed
from groundrule.prompt_learning.testing import Candidate, run_test, votes
from groundrule.prompt_learning.versions import Version, gains_after

MOST_TRIED = 20
"""Edits that did not help which are remembered."""
MOST_FAILURES = 2
"""Of the same words, after which they are given up: a single test misses much of what helps."""
MOST_TESTS = 3
"""Of one edit, where the first ones ended below `PROMISING` and above their level."""
PROMISING = 0.05


@dataclass
class PromptLearner(RoundLearner):
    """Improves the playbook below a frozen spec, by single edits that are tested.

    `update` takes groups that were answered under `parent_prompt` and scored against the spec, and gives the policy
    with the best prompt so far. The scenarios of its tests are `scenarios`; they must not be among those of the groups.
    """

    async def update(self, groups: Sequence[TrajectoryGroup]) -> Update:
        """One round. Raises `JudgeError` or `LlmError` where the reflection model gives nothing usable; then nothing
        has changed."""
        evidence = self._evidence(groups)
        proposed = [*self.state.carried, *self._harmful(), *await self._reflected(evidence)]
        kept, refused = await self._linted(proposed)
        number, before = self.state.round + 1, self.state.parent
        tested = await self._tested(kept[: self.settings.edits])
        self.state.round = number
        made = self._settled(tested)
        self._go_on(made, [*(one.proposed for one in tested), *kept[self.settings.edits :]], tested)
        self.state.tried = self.state.tried[-MOST_TRIED:]
        self.record = _record(number, before, evidence, refused, tested, made)
        counts = self._counts(evidence, refused=len(refused), tested=len(tested), accepted=len(made))
        more = {"prompt/pool": len(self.state.pool.live), "prompt/level": self.state.budget.level}
        return Update(self.policy, {**counts, **more})

    def _harmful(self) -> list[Proposed]:
        """Lessons that did harm on more scenarios than they helped are proposed for removal."""
        return [
            Proposed(Edit("remove", lesson=lesson.id, rationale="it did more harm than good in tests"), ())
            for lesson in self.parent.playbook.lessons
            if lesson.harmful > lesson.helpful
        ]

    def _go_on(
        self, made: Sequence[Version], proposed: Sequence[Proposed], tested: Sequence[TestedEdit]
    ) -> None:
        """What the next round starts from, and with."""
        decided = [one.proposed for one in tested if not self._is_to_go_on(one)]
        failed = [one.proposed for one in tested if one.test.standing.outcome == "not shown"]
        going_on = [one for one in proposed if one not in decided]
        self.state.carried = [replace(one, tests=one.tests + (one in failed)) for one in going_on]
        head = self.state.pool.head
        if made and made[-1] is not head and made[0].parent != head.number:
            # They helped beside another prompt; next they are tested beside the best one.
            self.state.carried[:0] = [one.proposed for one in tested if one.test.is_accepted]
            self.state.parent = head.number
            return
        self.state.parent = self.state.pool.draw_parent(self.seed, self.state.round).number

    async def _reflected(self, evidence: Evidence) -> list[Proposed]:
        edits = await self.reflector.edits(self.spec, self.parent.playbook, evidence, self._given_up)
        contrasts = {contrast.id: contrast.to_dict() for contrast in evidence.contrasts}
        return [Proposed(edit, tuple(contrasts[name] for name in edit.evidence)) for edit in edits]

    @property
    def _given_up(self) -> list[str]:
        """Lessons that failed as often as they may."""
        counts = Counter(self.state.tried)
        return [text for text, failures in counts.items() if failures >= MOST_FAILURES]

    async def _linted(
        self, proposed: Sequence[Proposed]
    ) -> tuple[list[Proposed], list[tuple[Proposed, str]]]:
        kept: list[Proposed] = []
        refused: list[tuple[Proposed, str]] = []
        for one in proposed:
            reason = await self._refusal(one.edit, [other.edit for other in kept])
            if reason is None:
                kept.append(one)
            else:
                refused.append((one, reason))
        return kept, refused

    async def _refusal(self, edit: Edit, others: Sequence[Edit]) -> str | None:
        reason = self._cheap_refusal(edit, self.parent.playbook)
        if reason is not None:
            return reason
        if any((edit.text or edit.lesson) == (other.text or other.lesson) for other in others):
            return "it is proposed twice"
        if edit.action == "remove":
            return None
        if edit.text in self._given_up:
            return "it was tried before"
        return (
            await self.reflector.objection(self.spec, edit.text)
            if self.settings.check_contradictions
            else None
        )

    def _cheap_refusal(self, edit: Edit, playbook: Playbook) -> str | None:
        return refusal_of(edit, playbook, self.spec, self._leaks)

    async def _tested(self, kept: Sequence[Proposed]) -> list[TestedEdit]:
        self.tested_groups = []
        if not kept:
            return []
        edited = [one.edit.applied_to(self.parent.playbook, self.state.ids) for one in kept]
        candidates = [
            Candidate(playbook.below(self.spec), level, one.edit.action == "remove")
            for one, (playbook, _), level in zip(
                kept, edited, self.state.budget.levels(len(kept)), strict=True
            )
        ]
        run = await run_test(
            self.trial,
            self.parent_prompt,
            candidates,
            self.scenarios,
            self.settings,
            self.seed,
            self.state.round,
        )
        self.tested_groups = run.groups
        return [
            TestedEdit(one, test, *made) for one, test, made in zip(kept, run.tested, edited, strict=True)
        ]

    def _settled(self, tested: Sequence[TestedEdit]) -> list[Version]:
        """The new versions, each from the one before; what each test means for the budget and what is known of
        lessons."""
        self.state.budget = self.state.budget.after(*(one.test.is_accepted for one in tested))
        passed = [one for one in tested if one.test.is_accepted]
        kept = joined(self.parent.playbook, passed, self._cheap_refusal, self.settings.bounds)
        parent, made = self.parent, []
        for one in kept:
            parent = self._version(one, parent)
            made.append(parent.number)
        # After the new versions were made: what is learned of their other lessons holds for them too.
        for one in tested:
            self._learned_of(one)
        for one in passed:
            if one not in kept:  # Better than the old prompt; is it than the new one?
                one.test.standing = replace(one.test.standing, outcome="open", reason="another was better")
        return [self.state.pool[number] for number in made]

    def _learned_of(self, one: TestedEdit) -> None:
        if one.edit.action == "remove" and not one.test.is_accepted:
            better, worse = votes(one.test.data)
            self.state.pool.count(one.lesson, helpful=worse, harmful=better)
        elif one.test.standing.outcome not in ("accepted", "open") and not self._is_to_go_on(one):
            self.state.tried.append(one.edit.text)

    def _is_to_go_on(self, one: TestedEdit) -> bool:
        """Better than the old prompt only, or so nearly shown to help that it is tested once more, on fresh answers."""
        standing = one.test.standing
        if standing.outcome != "not shown":
            return standing.outcome == "open"
        return one.proposed.tests + 1 < MOST_TESTS and standing.looks[-1].p <= PROMISING

    def _version(self, one: TestedEdit, parent: Version) -> Version:
        helpful, harmful = votes(one.test.data)
        is_first = parent.number == self.state.parent
        version = Version(
            number=self.state.pool.next_number,
            playbook=one.onto(parent.playbook).counted(one.lesson, helpful=helpful, harmful=harmful),
            parent=parent.number,
            how="test" if is_first else "same test",
            round=self.state.round,
            edit=one.edit,
            lesson=one.lesson,
            evidence=one.proposed.evidence,
            test=one.test.standing.to_dict(),
            gains=gains_after(parent, _counted(one)),
        )
        self.state.pool.add(version)
        return version


def _counted(one: TestedEdit) -> dict[str, float]:
    """What a version gained on its parent, by scenario.

    Of a removal no loss counts: it was shown to be within the margin, and the shorter prompt is the one to ship.
    """
    is_no_gain = one.edit.action == "remove" and one.test.mean <= 0
    return {} if is_no_gain else one.test.differences


def _record(
    number: int,
    parent: int,
    evidence: Evidence,
    refused: Sequence[tuple[Proposed, str]],
    tested: Sequence[TestedEdit],
    made: Sequence[Version],
) -> dict[str, Any]:
    return {
        "round": number,
        "parent": parent,
        **evidence.to_dict(),
        "refused": [{**one.to_dict(), "reason": reason} for one, reason in refused],
        "tested": [
            {
                **one.proposed.to_dict(),
                **one.test.standing.to_dict(),
                "differences": one.test.differences,
            }
            for one in tested
        ],
        "accepted": [version.number for version in made],
    }
