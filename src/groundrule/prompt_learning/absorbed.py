"""Distil and drop: after weights were trained, a lesson that they have absorbed is not needed in the prompt any more.

Every lesson is tested by its removal, one after the other, those with the least support first. It goes where the prompt
without it is shown to be no worse than by `settings.margin`; all removals together err with probability alpha at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from groundrule.algorithms.error_budget import ErrorBudget
from groundrule.prompt_learning.edits import Edit
from groundrule.prompt_learning.learner import PromptLearner
from groundrule.prompt_learning.playbook import Lesson
from groundrule.prompt_learning.testing import Candidate, Tested, run_test, votes
from groundrule.prompt_learning.versions import Version, gains_after


@dataclass(frozen=True)
class Dropped:
    """What came of the removals."""

    dropped: tuple[Lesson, ...]
    kept: tuple[Lesson, ...]
    tests: tuple[dict[str, Any], ...]


async def drop_absorbed(learner: PromptLearner) -> Dropped:
    """Test the lessons of the best playbook; each that goes makes a version that the next round starts from."""
    start = learner.state.pool.head.playbook.lessons
    budget = ErrorBudget(learner.settings.alpha, max(1, len(start)))
    tests: list[dict[str, Any]] = []
    for lesson in sorted(start, key=lambda one: one.helpful - one.harmful):
        test = await _without(learner, lesson, budget.level)
        budget = budget.after(test.is_accepted)
        tests.append({"lesson": lesson.id, "text": lesson.text, **test.standing.to_dict()})
        if test.is_accepted:
            learner.state.pool.only(_version(learner, lesson, test))
        else:
            better, worse = votes(test.data)
            learner.state.pool.count(lesson.id, helpful=worse, harmful=better)
    head = learner.state.pool.head
    learner.state.parent = head.number
    dropped = tuple(one for one in start if head.playbook.lesson(one.id) is None)
    return Dropped(dropped, head.playbook.lessons, tuple(tests))


async def _without(learner: PromptLearner, lesson: Lesson, level: float) -> Tested:
    playbook, spec = learner.state.pool.head.playbook, learner.spec
    shorter = Candidate(playbook.without(lesson.id).below(spec), level, is_removal=True)
    run = await run_test(
        learner.trial,
        playbook.below(spec),
        [shorter],
        learner.scenarios,
        learner.settings,
        learner.seed,
        "drop",
        learner.state.round,
        lesson.id,
    )
    return run.tested[0]


def _version(learner: PromptLearner, lesson: Lesson, test: Tested) -> Version:
    head = learner.state.pool.head
    return Version(
        number=learner.state.pool.next_number,
        playbook=head.playbook.without(lesson.id),
        parent=head.number,
        how="absorbed",
        round=learner.state.round,
        edit=Edit("remove", lesson=lesson.id, rationale="the agent does as well without it"),
        lesson=lesson.id,
        test=test.standing.to_dict(),
        gains=gains_after(head, test.differences),
    )
