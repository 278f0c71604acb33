"""The other ways to learn a prompt, to compare lessons with: whole playbooks by best of n, or by the package gepa.

They have the same scenarios, agent, judge and lint, and leave the same files.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from groundrule.prompt_learning.best_of_n import BestOfN
from groundrule.prompt_learning.gepa_adapter import Evolved, learn_with_gepa
from groundrule.prompt_learning.learner import PromptLearner
from groundrule.prompt_learning.reflection import Reflector
from groundrule.prompt_learning.rounds import RoundLearner
from groundrule.prompt_learning.state import LearnerState
from groundrule.prompt_learning.trial import Trial
from groundrule.prompt_learning.versions import Version, gains_after
from groundrule.recipes.prompt_learning.config import PromptConfig
from groundrule.recipes.prompt_learning.lines import round_metrics
from groundrule.recipes.prompt_learning.material import Material

_GEPA = "gepa"


def learner_of(
    config: PromptConfig, trial: Trial, reflector: Reflector, material: Material, state: LearnerState
) -> RoundLearner:
    """Who goes through the rounds; gepa has none, and is given a learner for its state and its prompt."""
    known = [*material.train, *material.final]
    learn, seed = config.learn, config.run.seed
    if learn.method == "best-of-n":
        return BestOfN(trial, reflector, material.tested, learn, seed, known, state, n=learn.candidates)
    return PromptLearner(trial, reflector, material.tested, learn, seed, known, state)


async def evolve(
    config: PromptConfig, learner: RoundLearner, material: Material, folder: Path
) -> tuple[Evolved, dict[str, float]]:
    """gepa's whole search, and numbers for the metrics; its best playbook is then the version that is shipped."""
    started, state = time.perf_counter(), learner.state
    head = state.pool.head
    found = await learn_with_gepa(
        learner.trial,
        learner.reflector,
        material.train,
        material.tested,
        budget=config.learn.rollouts,
        seed=config.run.seed,
        start=head.playbook,
        ids=state.ids,
        known=material.final,
        check_contradictions=config.learn.check_contradictions,
        folder=folder / _GEPA,
    )
    state.round += 1
    if found.playbook != head.playbook:
        number, gains = state.pool.next_number, gains_after(head, found.gains)
        state.pool.only(
            Version(number, found.playbook, parent=head.number, how=_GEPA, round=state.round, gains=gains)
        )
        state.parent = number
    return found, {
        **round_metrics(found.groups),
        "prompt/tested": found.candidates - 1,
        "prompt/refused": len(found.refused),
        "prompt/lessons": len(found.playbook.lessons),
        "prompt/version": state.pool.head.number,
        "prompt/gain": state.pool.head.gain,
        "prompt/rollouts": found.rollouts,
        "time/round_s": time.perf_counter() - started,
    }


def evolved_record(found: Evolved) -> dict[str, Any]:
    """For the file of the round."""
    return {
        "round": 1,
        "candidates": found.candidates,
        "rollouts": found.rollouts,
        "refused": [{"text": text, "reason": reason} for text, reason in found.refused],
        "lessons": [lesson.text for lesson in found.playbook.lessons],
        "gains": dict(found.gains),
    }


def evolved_line(found: Evolved, gain: float) -> str:
    """What it came to."""
    return (
        f"gepa: {found.candidates - 1} playbooks compared with the start in {found.rollouts} rollouts, "
        f"{len(found.refused)} lessons refused, {len(found.playbook.lessons)} lessons, gain {gain:+.3f}"
    )
