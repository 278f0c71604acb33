"""PromptLearner: scored groups in, a better prompt out.

A `Learner` like the LoRA trainer. Each round it collects what judges find wrong again and again, asks a reflection
model for a few edits of the playbook, refuses those that no test is worth, and tests the others blind, beside the
prompt that they change, on scenarios that gave no evidence. What is better beyond doubt becomes a new version.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from groundrule.data.group import TrajectoryGroup
from groundrule.data.protocols import Update
from groundrule.prompt_learning.edits import Edit
from groundrule.prompt_learning.evidence import Evidence
from groundrule.prompt_learning.lint import refusal_of
from groundrule.prompt_learning.playbook import Playbook
from groundrule.prompt_learning.rounds import RoundLearner
from groundrule.prompt_learning.state import Proposed
from groundrule.prompt_learning.testing import Candidate, Tested, run_test, votes
from groundrule.prompt_learning.versions import Version, gains_after

MOST_TRIED = 20
"""Lessons that did not help which the reflection model is told of."""
MOST_TESTS = 3
"""Of one edit, where the first ones ended below `PROMISING` and above their level."""
PROMISING = 0.05


_Entry = tuple[Proposed, Tested, tuple[Playbook, str]]
"""An edit, its test, and what it makes: the edited playbook, and the id of the lesson that it touches."""


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
        accepted = self._settled(tested)
        self._go_on(accepted, [*(one for one, *_ in tested), *kept[self.settings.edits :]], tested)
        self.state.tried = self.state.tried[-MOST_TRIED:]
        self.record = _record(number, before, evidence, refused, tested, accepted)
        counts = self._counts(
            evidence, refused=len(refused), tested=len(tested), accepted=accepted is not None
        )
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
        self, accepted: Version | None, proposed: Sequence[Proposed], tested: Sequence[_Entry]
    ) -> None:
        """What the next round starts from, and with."""
        decided = [one for one, test, _ in tested if not self._is_to_go_on(one, test)]
        failed = [one for one, test, _ in tested if test.standing.outcome == "not shown"]
        going_on = [one for one in proposed if one not in decided]
        self.state.carried = [replace(one, tests=one.tests + (one in failed)) for one in going_on]
        head = self.state.pool.head
        if accepted is not None and accepted is not head and accepted.parent != head.number:
            # It helped beside another prompt; next it is tested beside the best one.
            self.state.carried.insert(0, next(one for one in decided if one.edit == accepted.edit))
            self.state.parent = head.number
            return
        self.state.parent = self.state.pool.draw_parent(self.seed, self.state.round).number

    async def _reflected(self, evidence: Evidence) -> list[Proposed]:
        edits = await self.reflector.edits(self.spec, self.parent.playbook, evidence, self.state.tried)
        contrasts = {contrast.id: contrast.to_dict() for contrast in evidence.contrasts}
        return [Proposed(edit, tuple(contrasts[name] for name in edit.evidence)) for edit in edits]

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
        reason = refusal_of(edit, self.parent.playbook, self.spec, self._leaks)
        if reason is not None:
            return reason
        if any((edit.text or edit.lesson) == (other.text or other.lesson) for other in others):
            return "it is proposed twice"
        if edit.action == "remove":
            return None
        if edit.text in self.state.tried:
            return "it was tried before"
        return (
            await self.reflector.objection(self.spec, edit.text)
            if self.settings.check_contradictions
            else None
        )

    async def _tested(self, kept: Sequence[Proposed]) -> list[_Entry]:
        """Each edit with its test, the edited playbook, and the lesson that it touches."""
        self.tested_groups = []
        if not kept:
            return []
        edited = [one.edit.applied_to(self.parent.playbook, self.state.ids) for one in kept]
        budget, candidates = self.state.budget, []
        for one, (playbook, _) in zip(kept, edited, strict=True):
            prompt = playbook.below(self.spec)
            candidates.append(Candidate(prompt, budget.level, one.edit.action == "remove"))
            budget = budget.after(accepted=False)
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
        return list(zip(kept, run.tested, edited, strict=True))

    def _settled(self, tested: Sequence[_Entry]) -> Version | None:
        """The new version, if there is one; what each test means for the budget and for what is known of lessons."""
        accepted = [entry for entry in tested if entry[1].standing.outcome == "accepted"]
        best = max(accepted, key=lambda entry: entry[1].mean, default=None)
        for entry in tested:
            self.state.budget = self.state.budget.after(accepted=entry is best)
        version = None if best is None else self._version(*best)
        # After the new version was made: what is learned of its other lessons holds for it too.
        for entry in tested:
            self._learned_of(*entry)
        for entry in accepted:
            if entry is not best:  # Better than the old prompt; whether than the new one is not known yet.
                entry[1].standing = replace(entry[1].standing, outcome="open", reason="another was better")
        return None if version is None else self.state.pool[version.number]

    def _learned_of(self, one: Proposed, test: Tested, _: tuple[Playbook, str]) -> None:
        if one.edit.action == "remove" and one.edit.lesson and test.standing.outcome != "accepted":
            better, worse = votes(test.data)
            self.state.pool.count(one.edit.lesson, helpful=worse, harmful=better)
        elif test.standing.outcome not in ("accepted", "open") and not self._is_to_go_on(one, test):
            self.state.tried.append(one.edit.text)

    def _is_to_go_on(self, one: Proposed, test: Tested) -> bool:
        """Cut short, or so nearly shown to help that it is tested once more, on fresh answers."""
        if test.standing.outcome != "not shown":
            return test.standing.outcome == "open"
        return one.tests + 1 < MOST_TESTS and test.standing.looks[-1].p <= PROMISING

    def _version(self, one: Proposed, test: Tested, edited: tuple[Playbook, str]) -> Version:
        playbook, name = edited
        helpful, harmful = votes(test.data)
        version = Version(
            number=self.state.pool.next_number,
            playbook=playbook.counted(name, helpful=helpful, harmful=harmful),
            parent=self.state.parent,
            how="test",
            round=self.state.round,
            edit=one.edit,
            lesson=name,
            evidence=one.evidence,
            test=test.standing.to_dict(),
            gains=gains_after(self.parent, test.differences),
        )
        self.state.pool.add(version)
        return version


def _record(
    number: int,
    parent: int,
    evidence: Evidence,
    refused: Sequence[tuple[Proposed, str]],
    tested: Sequence[_Entry],
    accepted: Version | None,
) -> dict[str, Any]:
    return {
        "round": number,
        "parent": parent,
        **evidence.to_dict(),
        "refused": [{**one.to_dict(), "reason": reason} for one, reason in refused],
        "tested": [
            {**one.to_dict(), **test.standing.to_dict(), "differences": test.differences}
            for one, test, _ in tested
        ],
        "accepted": accepted.number if accepted else None,
    }
