"""What a round and the final test were like: numbers for the metrics, and a few lines to read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from groundrule.data.group import TrajectoryGroup
from groundrule.prompt_learning.rounds import RoundLearner
from groundrule.recipes.judging import judge_metrics


def round_metrics(groups: Sequence[TrajectoryGroup]) -> dict[str, float]:
    """Of the answers that a round learned from; nothing where none has a score."""
    rewards = [t.reward for group in groups for t in group.scored]
    scored = {"reward/mean": fmean(rewards)} if rewards else {}
    members = sum(map(len, groups))
    failed = sum(len(group.exceptions) for group in groups)
    return {
        **scored,
        "rollout/failed": float(failed),
        "reward/unscored": float(members - len(rewards)),
        **judge_metrics(groups),
    }


def round_line(number: int, rounds: int, metrics: Mapping[str, float], learner: RoundLearner) -> str:
    """A line for the round, and one for each edit that it decided about."""
    record = learner.record
    reward = f"{metrics['reward/mean']:.3f}" if "reward/mean" in metrics else "no scores"
    head = (
        f"round {number}/{rounds}: reward {reward}, {metrics['prompt/contrasts']:.0f} contrasts, "
        f"{metrics['prompt/complaints']:.0f} complaints that recur, {len(record['tested'])} edits tested, "
        f"{len(record['refused'])} refused, {metrics['prompt/lessons']:.0f} lessons, gain {metrics['prompt/gain']:+.3f}"
    )
    tested = [f"  {one['outcome']}: {_said(one['edit'])} ({_seen(one)})" for one in record["tested"]]
    refused = [f"  refused: {_said(one['edit'])} ({one['reason']})" for one in record["refused"]]
    return "\n".join([head, *tested, *refused])


def final_line(record: Mapping[str, Any]) -> str:
    """The final test in a line."""
    if record["same_prompt"]:
        return "final test: no lesson was accepted, so the prompt is the one that it began with"
    if not record["scenarios"]:
        return "final test: no scenario has scores for both prompts"
    found = record["difference"]
    interval = "" if found["low"] is None else f" ({found['low']:+.3f} .. {found['high']:+.3f})"
    return (
        f"final test: {found['value']:+.3f}{interval} on {record['scenarios']} scenarios, better on "
        f"{record['better']}, worse on {record['worse']}; {record['words'][0]:.0f} -> {record['words'][1]:.0f} words"
    )


def _said(edit: Mapping[str, Any]) -> str:
    named = f" {edit['lesson']}" if edit["lesson"] else ""
    return f"{edit['action']}{named} {edit['text']!r}" if edit["text"] else f"{edit['action']}{named}"


def _seen(one: Mapping[str, Any]) -> str:
    if one["reason"]:
        return str(one["reason"])
    if not one["looks"]:
        return "not looked at"
    last = one["looks"][-1]
    return f"{last['mean']:+.3f} on {last['scenarios']} scenarios, p {last['p']:.3g} of {last['level']:.3g}"
