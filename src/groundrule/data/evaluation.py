"""Evaluation: what is kept of one pass over held-out scenarios, as JSON in the run folder."""

from __future__ import annotations

from typing import Any, TypedDict


class EvaluatedAnswer(TypedDict, total=False):
    """One answer. `scenario_id` joins it with the same scenario at other steps."""

    scenario_id: str
    question: str
    context: str
    reference: str | None
    kind: str
    """What sort of question it is, such as `plain` or `unanswerable`."""
    answer: str
    score: float | None
    """The judge's score; None when it gave none, and then `explanation` says why."""
    raw: float | None
    explanation: str
    checks: dict[str, float | bool | None]
    """Measured without a judge: `facts`, `grounded`, `copied`, `words`, `abstains`,
    `unsupported_numbers`, `unsupported_emails`. Absent or None where a check does not apply."""


class Attempts(TypedDict):
    """Several sampled answers to each scenario, verified."""

    attempts: int
    """How many were asked for, a scenario."""
    pass_at: dict[str, float | None]
    """By k: the chance that one of k attempts is verified right, unbiased; means over scenarios."""
    majority: float | None
    """How often the answer given most often is right."""
    unscored: int
    """Attempts that the verifier could not decide; they are not right."""
    answers: dict[str, float | None]
    """Lengths and shares, named as in the step metrics."""
    scenarios: list[dict[str, Any]]
    """`scenario_id`, `attempts`, `verdicts`, `right`, `majority`, and the `answers` themselves."""


def right_rates(attempts: Attempts) -> dict[str, float]:
    """The share of right attempts by scenario; those of which nothing could be decided are left out."""
    return {s["scenario_id"]: s["right"] / s["attempts"] for s in attempts["scenarios"] if s["verdicts"]}


class Evaluation(TypedDict, total=False):
    """The first evaluation of a run is its "before", the last its "after"."""

    step: int
    split: str
    judge: dict[str, float | None]
    """`mean` over the scored answers, `raw_mean` of the judge's raw values."""
    checks: dict[str, float | None]
    """Each check over the answers that it applies to."""
    answers: list[EvaluatedAnswer]
    attempts: Attempts
    spec_effect: dict[str, Any]
    """How the same answers score under another system prompt."""
