"""The tables of docs/rlhf.md, made of `results/rlhf-seed*.json`."""

from __future__ import annotations

from typing import Any

from _cells import change, interval, minutes, policy_rows, table_row
from _machine import commits_of, results_of_seeds

RULE = "rag"
POLICIES = ("ppo", "dpo")
STAGES = {
    "answers and rankings": ("answers", "rankings"),
    "reward model": ("reward-model",),
    "PPO": ("ppo",),
    "DPO": ("dpo",),
    "evaluation of both": ("evaluation",),
    "everything that PPO needs": ("answers", "rankings", "reward-model", "ppo", "evaluation"),
    "... without DPO in its evaluation": ("answers", "rankings", "reward-model", "ppo", "evaluation of ppo"),
    "everything that DPO needs": ("answers", "rankings", "dpo", "evaluation"),
}
"""Rows of wall time."""


def in_short() -> str:
    """The rule's score of every seed, in a sentence."""
    found = results_of_seeds("rlhf")
    if not found:
        return "Not measured yet."
    said = [f"{policy.upper()} {', '.join(change(_rule(s, policy)) for s in found)}" for policy in POLICIES]
    seeds = ", ".join(str(s["seed"]) for s in found)
    return (
        f"The rule's score of sampled answers to {found[0]['evaluation']['scenarios']} held-out questions, start -> "
        f"trained, seeds {seeds}: {'; '.join(said)}."
    )


def seeds() -> str:
    """Reward model, both policies and the time of every stage, a column a seed."""
    found = results_of_seeds("rlhf")
    if not found:
        return "Not measured yet."
    measured = found[0]["measured"]
    head = [
        f"`python benchmarks/rlhf_seeds.py` at commit {commits_of(found)} on {measured['cores']} cores "
        f"({measured['cpu']}). "
        f"{found[0]['rankings']['rankings']} rankings of {found[0]['answers']['answers']} sampled answers, "
        f"{found[0]['evaluation']['scenarios']} held-out questions x {found[0]['evaluation']['attempts']} sampled "
        "answers of each policy; intervals are 95 %, over questions:",
        "",
        "| | " + " | ".join(f"seed {s['seed']}" for s in found) + " |",
        "|---" * (len(found) + 1) + "|",
        table_row(
            "reward model: held-out pairs in the right order",
            found,
            lambda s: interval(s["reward_model"]["accuracy"]),
        ),
        table_row(
            "the rule that longer is better, on the same pairs",
            found,
            lambda s: interval(s["reward_model"]["length"]["longer_is_better"]),
        ),
        table_row(
            "reward model: calibration error",
            found,
            lambda s: f"{s['reward_model']['calibration']['error']:.2f}",
        ),
    ]
    rows = [row for policy in POLICIES for row in _policy(policy, found)]
    times = [
        table_row(f"minutes: {name}", found, lambda s, stages=stages: minutes(s, *stages))
        for name, stages in STAGES.items()
    ]
    return "\n".join([*head, *rows, *times])


def steps() -> str:
    """PPO step by step: what it is trained on, the rule, and how far it has gone."""
    found = results_of_seeds("rlhf")
    if not found:
        return "Not measured yet."
    lines = [
        "| step | " + " | ".join(f"seed {s['seed']}: reward model, rule, KL" for s in found) + " |",
        "|---" * (len(found) + 1) + "|",
    ]
    for i in range(len(found[0]["ppo"])):
        cells = [s["ppo"][i] for s in found]
        said = (f"{c['reward/mean']:.2f}, {c[RULE]:.2f}, {c['ppo/kl_answer']:.1f}" for c in cells)
        lines.append(f"| {cells[0]['step']} | " + " | ".join(said) + " |")
    return "\n".join(lines)


def _policy(policy: str, found: list[dict[str, Any]]) -> list[str]:
    parts = [s["evaluation"]["policies"][policy] for s in found]
    title = policy.upper()
    drift = f"**{title}**, KL to the start, nats an answer"
    return [*policy_rows(title, parts), table_row(drift, parts, lambda p: interval(p["kl_answer"]))]


def _rule(seed: dict[str, Any], policy: str) -> dict[str, Any]:
    row: dict[str, Any] = seed["evaluation"]["policies"][policy]["judges"][RULE]
    return row
