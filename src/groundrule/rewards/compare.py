"""From attempts to scores: who is judged at all, how often, and what becomes of the readings."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from groundrule.data.score import Score, Scores
from groundrule.rewards.attempt import Attempt, differ_in_system, evidence_keys
from groundrule.rewards.calibration import Calibration
from groundrule.rewards.calls import Reader
from groundrule.rewards.debug import print_ranking
from groundrule.rewards.detector import Finding, findings_of_each
from groundrule.rewards.gate import GATED_SCORE, question_len, trivial
from groundrule.rewards.passes import Measured, Passes, measure

logger = logging.getLogger(__name__)

GOOD_GROUP_SIZE = 4
"""Below it a comparison says little about any one member."""

NOTHING_TO_COMPARE = "nothing to compare: the group has one distinct trajectory, so no judge was asked"

_said: set[str] = set()


def can_compare(attempts: Sequence[Attempt]) -> bool:
    """True when a judge could tell at least two of the attempts apart."""
    return len({attempt.key for attempt in attempts}) > 1


def nothing_to_compare(attempts: Sequence[Attempt]) -> Scores:
    """No score for anyone, with the reason."""
    return Scores(Score.none(NOTHING_TO_COMPARE) for _ in attempts)


async def compare(
    reader: Reader,
    attempts: Sequence[Attempt],
    plan: Passes,
    *,
    gate: bool = True,
    calibration: Calibration | None = None,
    debug: bool = False,
) -> Scores:
    """Scores of the attempts in order. Equal attempts are judged once and share the score.

    With `gate`, attempts that say nothing get the floor and are not shown. Text that addresses the grader
    is flagged in the explanation and counted; it changes no score.
    """
    _warn_about(attempts)
    low = floors(attempts) if gate else [None] * len(attempts)
    scores = {a.key: score for a, score in zip(attempts, low, strict=True) if score}
    metrics = {"judge/gated": float(sum(a.key in scores for a in attempts))} if scores else {}
    distinct = {attempt.key: attempt for attempt in attempts if attempt.key not in scores}
    if distinct:
        # Sorted first: the same attempts in another order make the same prompts, hence the same cache entries.
        evidence = {a.key: own for a, own in zip(attempts, evidence_keys(attempts), strict=True)}
        shown = sorted(distinct.values(), key=lambda attempt: evidence[attempt.key])
        measured = await measure(reader, shown, plan, calibration)
        if debug:
            for call in measured.calls:
                print(call.raw)
        scores |= {a.key: _score(measured, i, len(attempts)) for i, a in enumerate(shown)}
        metrics |= measured.metrics
        asked = question_len(attempts)
        flags = dict(zip(distinct, findings_of_each(list(distinct.values()), asked), strict=True))
        scores |= {key: _flagged(scores[key], found) for key, found in flags.items() if found}
        if any(flags.values()):
            metrics["judge/flagged"] = float(sum(bool(flags.get(a.key)) for a in attempts))
    if debug:
        print_ranking([scores[key] for key in dict.fromkeys(attempt.key for attempt in attempts)])
    return Scores((scores[attempt.key] for attempt in attempts), metrics=metrics)


def floors(attempts: Sequence[Attempt]) -> list[Score | None]:
    """The score of each attempt that says nothing and is not judged; None for those that are."""
    asked = question_len(attempts)
    reasons = [trivial(attempt, asked) for attempt in attempts]
    return [
        None
        if reason is None
        else Score(value=GATED_SCORE, explanation=f"not shown to the judge: {reason}", cost=0.0)
        for reason in reasons
    ]


def _score(measured: Measured, index: int, members: int) -> Score:
    """What all calls cost is shared by all members of the group."""
    value, cost = measured.values[index], measured.cost_usd
    share = None if cost is None else cost / members
    if value is None:
        return Score.none("the judge could not decide enough about it", cost=share)
    return Score(
        value=value, explanation=measured.explanations[index], parts=measured.parts_of(index), cost=share
    )


def _flagged(score: Score, findings: Sequence[Finding]) -> Score:
    said = "; ".join(f"{f.kind}: {f.text[:80]!r}" for f in findings[:3])
    text = f"{score.explanation} [addresses the grader: {said}]"
    return score.model_copy(update={"explanation": text, "parts": {**score.parts, "flagged": 1.0}})


def _warn_about(attempts: Sequence[Attempt]) -> None:
    if len(attempts) < GOOD_GROUP_SIZE and "small group" not in _said:
        _said.add("small group")
        logger.warning(
            "a group of %d trajectories: RULER compares, and works best with %d to 8 of them",
            len(attempts),
            GOOD_GROUP_SIZE,
        )
    if differ_in_system(attempts):
        logger.warning(
            "the trajectories of one group carry different system prompts; each is judged by its own"
        )
