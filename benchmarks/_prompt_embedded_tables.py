"""The table of `prompt_embedded.py`."""

from __future__ import annotations

from typing import Any

from _machine import commits_of, results_of_seeds


def prompt_embedded() -> str:
    """Each run in a row, and what it proposed."""
    found = results_of_seeds("prompt_embedded")
    if not found:
        return "Not measured yet."
    lines = [
        "The embedded model as agent and as writer, the likelihood judge, five rounds (`python "
        f"benchmarks/prompt_embedded.py`, commit {commits_of(found)}):",
        "",
        "| seed | minutes | answers | complaints that recur | edits tested | refused | accepted | final test |",
        "|---|---|---|---|---|---|---|---|",
        *(_row(result) for result in found),
    ]
    proposed = [
        f"- {test['edit']['action']}: {test['edit']['text']} ({test['outcome']})"
        for result in found
        for one in result["rounds"]
        for test in one["tested"]
    ]
    return "\n".join(
        [*lines, *(["", "What it wrote, and how the tests went:", "", *proposed] if proposed else [])]
    )


def _row(result: dict[str, Any]) -> str:
    rounds, final = result["rounds"], result["final"] or {}
    tested = [test for one in rounds for test in one["tested"]]
    cells = [
        str(result["seed"]),
        f"{result['seconds'] / 60:.1f}",
        f"{sum(one['prompt/rollouts'] for one in rounds):,.0f}",
        f"{sum(one['prompt/complaints'] for one in rounds):.0f}",
        str(len(tested)),
        str(sum(len(one["refused"]) for one in rounds)),
        str(sum(test["outcome"] == "accepted" for test in tested)),
        _final(final),
    ]
    return f"| {' | '.join(cells)} |"


def _final(final: dict[str, Any]) -> str:
    if final.get("same_prompt", True):
        return "same prompt"
    gain = final["difference"]
    return f"{gain['value']:+.3f} ({gain['low']:+.3f} .. {gain['high']:+.3f})"
