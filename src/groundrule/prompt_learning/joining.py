"""Which of the edits that passed the same look go into the next prompt together.

Each was shown to be better than one and the same old prompt. That they are so together is taken for granted, except
where they speak of one lesson, say the same, are two removals (each may be worse by the whole margin), or would break a
guard if what each does to it were added up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

from groundrule.prompt_learning.acceptance import Bounds, broken_guard
from groundrule.prompt_learning.edits import Edit
from groundrule.prompt_learning.playbook import Playbook
from groundrule.prompt_learning.state import Proposed
from groundrule.prompt_learning.testing import Tested
from groundrule.prompt_learning.trial import Seen


@dataclass(frozen=True)
class TestedEdit:
    """An edit, its test, and what it makes of the prompt that it was tested beside."""

    __test__ = False

    proposed: Proposed
    test: Tested
    playbook: Playbook
    lesson: str
    """The id of the lesson that it touches."""

    @property
    def edit(self) -> Edit:
        """What was tested."""
        return self.proposed.edit

    def onto(self, other: Playbook) -> Playbook:
        """The same edit of another playbook."""
        written = self.playbook.lesson(self.lesson)
        return other.without(self.lesson) if written is None else other.with_lesson(written)


def joined(
    parent: Playbook,
    passed: Sequence[TestedEdit],
    refusal: Callable[[Edit, Playbook], str | None],
    bounds: Bounds,
) -> list[TestedEdit]:
    """Of the edits that passed beside `parent`, those that go together, the best first."""
    kept: list[TestedEdit] = []
    so_far = parent
    for one in sorted(passed, key=lambda one: -one.test.mean):
        if not kept or (
            not any(_exclude(one, other) for other in kept)
            and refusal(one.edit, so_far) is None
            and _keeps_guards(_added_up([*kept, one]), bounds)
        ):
            kept.append(one)
            so_far = one.onto(so_far)
    return kept


def _exclude(one: TestedEdit, other: TestedEdit) -> bool:
    return one.lesson == other.lesson or one.edit.action == other.edit.action == "remove"


def _keeps_guards(seen: Sequence[Seen], bounds: Bounds) -> bool:
    """Without a scenario that all were tested on nothing is known."""
    return bool(seen) and broken_guard(seen, bounds) is None


def _added_up(together: Sequence[TestedEdit]) -> list[Seen]:
    """What the edits would do to each scenario that all were tested on, if none changed what the others do."""
    seen = [{one.scenario_id: one for one in edit.test.data} for edit in together]
    shared = [name for name in seen[0] if all(name in one for one in seen)]
    return [reduce(_sum, (one[name] for one in seen)) for name in shared]


def _sum(one: Seen, other: Seen) -> Seen:
    old, new = one.words
    names = one.guards.keys() & other.guards.keys()
    return Seen(
        scenario_id=one.scenario_id,
        difference=one.difference + other.difference,
        words=(old, new + other.words[1] - other.words[0]),
        guards={name: one.guards[name] + other.guards[name] for name in names},
    )
