"""The simulated teacher of `constitution.py`: what it knows of the built-in support questions.

It knows the reference answers of the training questions and writes them as its revisions. This leak is meant: the
chain is shown a critic as good as that. Of held-out businesses it writes nothing, and they are in no training; there it
only compares, in the evaluation.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from groundrule.data.scenario import Scenario
from groundrule.llm import registry
from groundrule.rewards.checks import content_words, facts_mentioned
from groundrule.rewards.constitution.simulated import SimulatedTeacher
from groundrule.rollouts.scenarios import load_scenarios

ERROR = 0.1
NAME = f"simulated/simulated-{ERROR}"
"""As critic and judge; the second part stands beside each preference."""
SOURCE = "support"


def register() -> None:
    """Let the name stand for the teacher in this process."""
    registry.register_prefix(NAME.partition("/")[0], f"{__name__}:made")


def made(name: str, params: dict[str, Any]) -> SimulatedTeacher:
    """What the name stands for; it has no parameters."""
    return SimulatedTeacher(better, quality, error_of(name))


def error_of(name: str) -> float:
    """The share of its replies in which the teacher of this name errs."""
    return float(name.rpartition("-")[2])


def better(task: str) -> str | None:
    """The reference, of training questions only."""
    scenario = scenario_of(task)
    return scenario.reference if scenario and scenario.split == "train" else None


def quality(task: str, answer: str) -> float:
    """The mean of two shares: key facts that are mentioned, and words in common with the reference (F1)."""
    scenario = scenario_of(task)
    if scenario is None:
        return 0.0
    facts = facts_mentioned(answer, scenario.facts) or 0.0
    return (facts + common(answer, scenario.reference or "")) / 2


def common(answer: str, reference: str) -> float:
    """F1 of the sets of content words."""
    said, wanted = set(content_words(answer)), set(content_words(reference))
    return 2 * len(said & wanted) / (len(said) + len(wanted)) if said and wanted else 0.0


def scenario_of(task: str) -> Scenario | None:
    """The scenario whose question stands in the text: the last one, after any examples."""
    found = [s for s in scenarios() if s.question in task]
    return max(found, key=lambda s: task.rindex(s.question), default=None)


@cache
def scenarios() -> tuple[Scenario, ...]:
    """Both splits."""
    return tuple(s for split in ("train", "held-out") for s in load_scenarios(SOURCE, split=split))
