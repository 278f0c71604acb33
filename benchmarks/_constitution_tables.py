"""The tables of docs/constitution.md, made of `results/constitution-<teacher>-seed*.json`."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from _cells import minutes, policy_rows, table_row
from _machine import commits_of, results_of_seeds

TEACHERS = ("local", "simulated")
STAGES = {
    "answers, critiques and revisions": ("answers", "revisions"),
    "training on the revisions": ("sft",),
    "samples and comparisons": ("samples", "preferences"),
    "DPO": ("dpo",),
    "evaluation": ("evaluation",),
}
"""Rows of wall time."""


def runs() -> str:
    """What every stage gave and what judges and checks say of the policies, a column a run; then the principles."""
    found = [run for teacher in TEACHERS for run in results_of_seeds(f"constitution-{teacher}")]
    if not found:
        return "Not measured yet."
    measured, held_out = found[0]["measured"], found[0]["evaluation"]
    lines = [
        f"`python benchmarks/constitution.py` at commit {commits_of(found)} on {measured['cores']} cores "
        f"({measured['cpu']}). {held_out['scenarios']} held-out questions x {held_out['attempts']} sampled answers of "
        "each policy, start -> trained; intervals are 95 %, over questions.",
        *_about_the_simulated(found),
        "",
        *_head([_name(run) for run in found]),
        *_feedback(found),
    ]
    for policy in held_out["policies"]:
        title = policy.upper() if policy in ("ppo", "dpo") else policy
        lines += policy_rows(title, [run["evaluation"]["policies"][policy] for run in found])
    lines += [
        table_row(f"minutes: {name}", found, lambda run, stages=stages: minutes(run, *stages))
        for name, stages in STAGES.items()
    ]
    return "\n".join([*lines, "", *_principles(found)])


def _about_the_simulated(found: list[dict[str, Any]]) -> list[str]:
    errors = sorted({run["error"] for run in found if run["error"] is not None})
    if not errors:
        return []
    said = ", ".join(f"{error:.0%}" for error in errors)
    return [
        "Where it says simulated, critic and judge are no model: they know the reference answers, and err in "
        f"{said} of their replies. Key facts are part of what that judge goes by."
    ]


def _name(run: dict[str, Any]) -> str:
    who = "simulated critic and judge" if run["teacher"] == "simulated" else f"`{run['judge']}`"
    return f"{who}, seed {run['seed']}"


def _head(names: list[str]) -> list[str]:
    return ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]


def _feedback(found: list[dict[str, Any]]) -> list[str]:
    """The stages before anything is learned from preferences."""
    cells = {
        "revisions of all rounds": lambda run: (
            f"{run['revisions']['revisions']} of {run['revisions']['rounds']}"
        ),
        "conversations that are learned": lambda run: str(run["sft"]["examples"]),
        "loss of a token, first and last step": lambda run: " -> ".join(
            f"{run['sft']['losses'][place]:.2f}" for place in (0, -1)
        ),
        "comparisons, of these ties": lambda run: "{comparisons}, {ties}".format(**run["preferences"]),
        "both orders agree": lambda run: f"{_agreement(run):.0%}",
        "probability of A and B together": lambda run: _share(run["preferences"]["mass"]),
    }
    return [table_row(name, found, cell) for name, cell in cells.items()]


def _agreement(run: dict[str, Any]) -> float:
    """Over all comparisons, whatever the principle."""
    rows = run["preferences"]["principles"].values()
    return fmean(agree for r in rows for agree in [r["orders_agree"]] * r["comparisons"])


def _principles(found: list[dict[str, Any]]) -> list[str]:
    names = dict.fromkeys(name for run in found for name in run["preferences"]["principles"])
    lines = ["Comparisons by principle, how certain, how often both orders agree:", ""]
    lines += _head([_name(run) for run in found])
    for name in names:
        lines.append(table_row(f"`{name}`", found, lambda run, name=name: _principle(run, name)))
    return lines


def _principle(run: dict[str, Any], name: str) -> str:
    said = run["preferences"]["principles"].get(name)
    if said is None:
        return "-"
    return f"{said['comparisons']}, {said['certainty']:.2f}, {said['orders_agree']:.0%}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
