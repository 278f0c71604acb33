"""The table of `universal_verifier.py`."""

from __future__ import annotations

import json
from typing import Any

from _machine import RESULTS


def universal(record: dict[str, Any]) -> str:
    """The simulated judges, and the embedded model where it was measured."""
    keys = record["master_keys"]
    lines = [
        f"Simulated judge; {record['answers']} answers to {record['tasks']} tasks, half of them right, with 95 % "
        "intervals (`python benchmarks/universal_verifier.py`):",
        "",
        "| error of the judge | way | scored | precision | recall | calls an answer |",
        "|---|---|---|---|---|---|",
    ]
    rows = {
        (row["way"], *((row["error"], row["common"]) if row["calls_an_answer"] else ())): row
        for row in record["rows"]
    }
    for row in rows.values():
        if not row["calls_an_answer"]:
            lines.append(f"| no judge | {_row(row, record['answers'])} | 0 |")
            continue
        lasting = f", {row['common']:.0%} of it in every vote alike" if row["common"] else ""
        lines.append(
            f"| {row['error']:.0%}{lasting} | {_row(row, record['answers'])} | {row['calls_an_answer']:.1f} |"
        )
    lines += [
        "",
        f"{keys['answers']} answers that say nothing ({keys['a_task']} a task), before a judge that takes everything "
        f"for right: the verifier accepts {keys['accepted']}, the judge alone {keys['accepted_by_one_call']}. Of "
        f"{keys['not_foreseen']} such answers that were written after the gate, in whole sentences mostly, it accepts "
        f"{keys['not_foreseen_accepted']} from this judge.",
    ]
    path = RESULTS / "universal_verifier_local.json"
    if not path.exists():
        return "\n".join([*lines, "", "The embedded model as the judge: not measured yet."])
    local = json.loads(path.read_text())
    keys = local["master_keys"]
    lines += [
        "",
        f"`{local['judge']}` as the judge, {local['answers']} answers:",
        "",
        "| way | scored | precision | recall |",
        "|---|---|---|---|",
        *(f"| {_row(row, local['answers'])} |" for row in local["rows"]),
        "",
        f"Of {keys['answers']} answers that say nothing it accepts {keys['accepted_by_one_call']} when it is believed, "
        f"and the verifier {keys['accepted']}.",
    ]
    return "\n".join(lines)


def _row(row: dict[str, Any], answers: int) -> str:
    shown = " | ".join(_share(row[name]) for name in ("precision", "recall"))
    return f"{row['way']} | {row['scored']} of {answers} | {shown}"


def _share(rate: dict[str, Any]) -> str:
    if rate["value"] is None:
        return "none accepted"
    low, high = rate["ci95"]
    return f"{rate['value']:.3f} ({low:.3f} .. {high:.3f})"
