"""Alarms on the judge as an instrument: does it still tell answers apart, and does it agree with itself?"""

from __future__ import annotations

from statistics import fmean, median

from groundrule.recipes.judge_eval.agreement import mean_of
from groundrule.recipes.judge_eval.alarm import Alarm, unmeasured
from groundrule.recipes.judge_eval.history import History
from groundrule.recipes.judge_eval.trends import last_third, recorded

FLAT_SPREAD = 0.05
"""Standard deviation within a group below which the judge hardly tells its answers apart."""
TIED = 1e-6
"""Below this all answers of a group have the same score."""


def saturation(history: History) -> Alarm:
    """Scores near the top, or too alike to learn from."""
    last = last_third(history.steps)
    reward, spreads = mean_of(s.reward for s in last), [x for s in last for x in s.spreads]
    if reward is None or not spreads:
        return unmeasured("saturation", "no group has two scored answers")
    flat = sum(spread < FLAT_SPREAD for spread in spreads) / len(spreads)
    return Alarm(
        "saturation",
        reward > 0.9 or flat > 0.4,
        f"mean score {reward:.2f}; {flat:.0%} of the groups have a spread below {FLAT_SPREAD}",
        "mean above 0.9, or more than 40% such groups, in the last third of the steps",
        "take harder scenarios, or sharpen the system prompt by what separates good answers from very good ones",
    )


def tied_groups(history: History) -> Alarm:
    """Groups in which every answer has the same score teach nothing."""
    spreads = [x for s in last_third(history.steps) for x in s.spreads]
    if not spreads:
        return unmeasured("tied groups", "no group has two scored answers")
    tied = sum(spread < TIED for spread in spreads) / len(spreads)
    return Alarm(
        "tied groups",
        tied > 0.25,
        f"{tied:.0%} of the groups are ties",
        "more than 25% in the last third of the steps",
        "raise policy.temperature, take scenarios that are neither always nor never answered well, or a judge that "
        "tells the answers apart",
    )


def low_reliability(history: History) -> Alarm:
    """Readings of one group that disagree."""
    values = recorded(history, "judge/reliability")
    if not values:
        return unmeasured("low reliability", "the judge was not asked twice about a group")
    return Alarm(
        "low reliability",
        median(values) < 0.5,
        f"median over {len(values)} steps {median(values):.2f}",
        "median below 0.5",
        "raise judge.passes or judge.max_passes, or take a better judge",
    )


def flip_rate(history: History) -> Alarm:
    """Pairs that change order when the group is shown in reverse."""
    values = recorded(history, "judge/flip_rate")
    if not values:
        return unmeasured("flip rate", "the judge was not asked twice about a group")
    return Alarm(
        "flip rate",
        fmean(values) > 0.25,
        f"{fmean(values):.0%} of the pairs",
        "more than 25%",
        "raise judge.passes, keep it even, or take a better judge",
    )


def canaries_missed(history: History) -> Alarm:
    """An answer that is known to be bad was not the lowest."""
    values = recorded(history, "judge/canary_missed")
    if not values:
        return unmeasured("canaries missed", "no call carried a canary (judge.canary_rate)")
    return Alarm(
        "canaries missed",
        any(values),
        f"in {sum(value > 0 for value in values)} of {len(values)} steps with canaries",
        "any",
        "look at the judge with `groundrule judge-eval --judge NAME`; empty openers and pleas to it must not win",
    )


def twin_gap(history: History) -> Alarm:
    """Two copies of one answer with different scores."""
    values = recorded(history, "judge/twin_gap")
    if not values:
        return unmeasured("twin gap", "no call carried a twin (judge.twin_rate)")
    return Alarm(
        "twin gap",
        fmean(values) > 0.08,
        f"two copies of one answer differ by {fmean(values):.3f}",
        "mean above 0.08",
        "raise judge.passes, and set train.tie_band",
    )


def unscored(history: History) -> Alarm:
    """Answers that the judge gave nothing for."""
    answers, without = sum(s.answers for s in history.steps), sum(s.unscored for s in history.steps)
    if not answers:
        return unmeasured("unscored answers", "no step holds an answer")
    return Alarm(
        "unscored answers",
        without / answers > 0.05,
        f"{without} of {answers} ({without / answers:.1%})",
        "more than 5%",
        "`groundrule doctor` names the most frequent reason; add judge.fallback",
    )
