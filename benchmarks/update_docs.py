"""Write the measured tables of README.md and docs/ from `results/*.json`, between their markers.

python benchmarks/update_docs.py
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import _constitution_tables
import _prompt_embedded_tables
import _prompt_tables
import _rlhf_tables
import _rlvr_tables
import _soak_table
import _universal_tables
from _machine import RESULTS, commits_of, results_of_seeds

from groundrule.recipes.demo import CHECKS

PROJECT = Path(__file__).parent.parent
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").glob("*.md"))]

LABELS = {"judge": "judge (trained on)", **CHECKS}


def demo() -> str:
    seeds = results_of_seeds("demo")
    if not seeds:
        return "Not measured yet."
    measured = seeds[0]["measured"]
    lines = [
        f"{seeds[0]['questions']} held-out questions, {seeds[0]['steps']} steps, before -> after "
        f"(interval of the difference), measured with `python benchmarks/demo_seeds.py` at commit "
        f"{commits_of(seeds)} on {measured['cores']} cores ({measured['cpu']}):",
        "",
        "| | " + " | ".join(f"seed {s['seed']}" for s in seeds) + " |",
        "|---" * (len(seeds) + 1) + "|",
    ]
    lines += [
        f"| {label} | " + " | ".join(_cell(s["rows"][n]) for s in seeds) + " |" for n, label in LABELS.items()
    ]
    minutes = ", ".join(f"{s['wall_s'] / 60:.1f}" for s in seeds if s["wall_s"])
    lines += ["", f"Wall time of training and evaluation: {minutes} minutes."]
    kinds = list(seeds[0]["facts_by_kind"])
    said = ", ".join(f"{kind} {_by_kind(seeds, kind)}" for kind in kinds)
    lines.append(f"Key facts by kind of question, mean of the seeds: {said}.")
    for spec in (seeds[0].get("spec_effect") or {}).get("specs", []):
        order = " > ".join(spec["order"])
        lines.append(
            f"Spec effect (seed {seeds[0]['seed']}), {spec['name']} prompt: {spec['mean']:.3f}, order {order}."
        )
    return "\n".join(lines)


def _by_kind(seeds: list[dict[str, Any]], kind: str) -> str:
    sides = [[s["facts_by_kind"][kind][i] for s in seeds] for i in (0, 1)]
    return " -> ".join(f"{sum(side) / len(side):.2f}" for side in sides)


def _cell(row: dict[str, Any]) -> str:
    low, high = row["difference_ci95"]
    interval = "" if low is None else f" ({low:+.2f} .. {high:+.2f})"
    return f"{row['before']:.2f} -> {row['after']:.2f}{interval}"


def bounds(record: dict[str, Any]) -> str:
    kinds = list(next(iter(record["mean_raw"].values())))
    lines = [
        f"Mean raw score of kinds of answers to {record['scenarios']} training questions, as each bound is added "
        "(`python benchmarks/judge_bounds.py`):",
        "",
        "| | " + " | ".join(kinds) + " |",
        "|---" * (len(kinds) + 1) + "|",
    ]
    for stage, row in record["mean_raw"].items():
        lines.append(f"| {stage} | " + " | ".join(f"{row[k]:.2f}" for k in kinds) + " |")
    return "\n".join(lines)


def speed(record: dict[str, Any]) -> str:
    """Every comparison in one table; `record` is that of the GRPO update, the others are read beside it."""
    return _speed(record, lambda rows: rows)


def speed_short(record: dict[str, Any]) -> str:
    """The main line of each comparison; of the start, the import of what trains."""
    return _speed(record, lambda rows: [r for r in rows if "trains" in r[0]] or rows[:1])


def _speed(record: dict[str, Any], chosen: Callable[[list[list[str]]], list[list[str]]]) -> str:
    measured = record["measured"]
    lines = [
        f"{measured['cores']} cores ({measured['cpu']}), {measured['threads']} threads for each side, torch "
        f"{measured['torch']}; the median of interleaved runs, least and most in brackets. Theirs is TRL 1.16.0 where "
        "nothing else is said.",
        "",
        "| work | unit | ours | theirs | ratio |",
        "|---|---|---|---|---|",
    ]
    for file, rows in (("grpo_step_trl", update_rows), ("generate", generate_rows), ("train_step", step_rows),
                       ("gather_score", gather_rows), ("startup", startup_rows)):  # fmt: skip
        path = RESULTS / f"{file}.json"
        if path.exists():
            lines += ["| " + " | ".join(row) + " |" for row in chosen(rows(json.loads(path.read_text())))]
    return "\n".join(lines)


def _range(numbers: dict[str, Any]) -> str:
    return f"{numbers['median']} [{numbers['min']}, {numbers['max']}]"


def update_rows(record: dict[str, Any]) -> list[list[str]]:
    rows = []
    for case in record["cases"]:
        kind = ", checkpointing" if case["gradient_checkpointing"] else ""
        name = f"GRPO update, prompt {case['prompt']}, {case['answers']} x {case['tokens']}{kind}"
        rows.append([name, "CPU s", _range(case["ours"]), _range(case["theirs"]), f"{case['ratio']}x"])
        peaks = [f"{case[side]['peak_mb']:,}" for side in ("ours", "theirs")]
        rows.append([f"{name}: peak memory", "MB", *peaks, f"{case['memory_ratio']}x"])
    return rows


def generate_rows(record: dict[str, Any]) -> list[list[str]]:
    rows = []
    for case in record["cases"]:
        name = (
            f"generate {case['groups']} x {case['answers']}, prompt {case['prompt']}, {case['tokens']} tokens"
        )
        rates = [f"{case[side]['tokens_per_s']}" for side in ("ours", "theirs")]
        rows.append([name, "tokens/s", *rates, f"{case['ratio']}x"])
        decoding = [_range(case[side]["decoding"]) for side in ("ours", "theirs")]
        rows.append([f"{name}: decoding alone", "CPU s", *decoding, f"{case['decoding_ratio']}x"])
    return rows


def step_rows(record: dict[str, Any]) -> list[list[str]]:
    [case] = record["cases"]
    name = f"whole step, {case['groups']} x {case['answers']} answers of {case['tokens']} tokens"
    return [
        [name, "CPU s", _range(case["ours"]), _range(case["theirs"]), f"{case['ratio']}x"],
        [
            name,
            "wall s",
            _range(case["ours"]["wall"]),
            _range(case["theirs"]["wall"]),
            f"{case['wall_ratio']}x",
        ],
    ]


def gather_rows(record: dict[str, Any]) -> list[list[str]]:
    [case] = record["cases"]
    name = f"{case['trajectories']:,} trajectories through gather and RULER, against ART"
    peaks = [f"{case[side]['peak_mb']:,}" for side in ("ours", "theirs")]
    return [
        [name, "CPU s", _range(case["ours"]), _range(case["theirs"]), f"{case['ratio']}x"],
        [f"{name}: peak memory", "MB", *peaks, f"{record['memory_ratio']}x"],
    ]


def startup_rows(record: dict[str, Any]) -> list[list[str]]:
    names = {"import": "`import`", "--help": "`--help`", "training names": "import of what trains"}
    return [
        [
            f"{names.get(name, name + ' of a server, from the start of the program')}, against {peer}",
            "CPU s",
            str(case["ours"]["median"]),
            str(case[peer]["median"]),
            f"{ratio}x",
        ]
        for name, case in record["cases"].items()
        for peer, ratio in case["ratio"].items()
    ]


def tree_update(record: dict[str, Any]) -> str:
    lines = [
        "| shared with the first member | unique tokens of all | CPU s | ms a unique token |",
        "|---|---|---|---|",
    ]
    for case in record["cases"]:
        tokens = f"{case['unique_tokens']:,} of {case['all_tokens']:,}"
        lines.append(f"| {case['shared']} | {tokens} | {_range(case)} | {case['ms_per_unique_token']} |")
    said = f"Largest deviation from the mean cost of a unique token: {record['per_token_spread']:.1%}."
    return "\n".join([*lines, "", said])


def ppo_memory(record: dict[str, Any]) -> str:
    measured, runs = record["measured"], record["runs"]
    lines = [
        f"{record['model']} in float32 with LoRA on {measured['cores']} cores ({measured['cpu']}), commit "
        f"{measured['commit']}; medians of {runs['usual']} processes, least and most in brackets; mapped: "
        f"{runs.get('mapped', 0)} process.",
        "",
        "| method | prompt tokens | answers | allocator | measured MiB | planned MiB | planned / measured | CPU s |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for case in record["cases"]:
        answers = f"{case['groups']} x {case['answers']} of {case['tokens']} tokens"
        work = f"`{case['mode']}` | {case['prompt']} | {answers} | {case['allocator']}"
        peak = _range({name: round(mib) for name, mib in case["peak_mib"].items()})
        planned = f"{case['planned_mib']:.0f} | {case['ratio']:.2f} | {case['cpu_s']['median']:.0f}"
        lines.append(f"| {work} | {peak} | {planned} |")
    return "\n".join(lines)


def growth(record: dict[str, Any]) -> str:
    lines = []
    for what in ("generate", "update"):
        found = record[what]
        lines.append(
            f"- {what}: {found['seconds_at_zero']} s + {found['seconds_per_1000_tokens']} s for 1,000 unique tokens "
            f"(R2 {found['r2']})"
        )
    return "\n".join(lines)


SIGNAL_ROWS = {
    8: {
        "one": "one pass in the order given, plain std (as ART)",
        "shuffled": "one pass, shuffled",
        "order_reverse": "two passes: an order and its reverse",
        "order_reverse+reliability": "the same, with reliability",
        "four": "four passes",
        "four+reliability": "four passes, with reliability",
        "adaptive": "two, and two more where reliability is low (slots: at most)",
        "adaptive+reliability": "the same, with reliability",
    },
    32: {
        "one": "one call with all 32, plain std (as ART)",
        "chunks_1": "one partition into calls of 8",
        "chunks_2": "two partitions, Bradley-Terry",
        "chunks_2+reliability": "the same, with reliability",
        "chunks_3": "three partitions, Bradley-Terry",
        "chunks_3+reliability": "the same, with reliability",
    },
}


def judge_signal(record: dict[str, Any]) -> str:
    """Cosines over single groups and pooled, and what truly equal groups get."""
    lines = [
        f"{record['groups']} groups each; cosine with the true advantages (95 % interval), the same pooled over all "
        "groups with a group of equals after every third (mixed), and mean advantage where all members are equal:",
    ]
    for items, names in SIGNAL_ROWS.items():
        heads = [f"{judge}: cosine | mixed | equal" for judge in ("strong", "weak")]
        lines += ["", f"| {items} members | slots | {' | '.join(heads)} |", "|---" * 8 + "|"]
        for name, label in names.items():
            rows = [record["all"][f"{judge}/{items}/0"][name] for judge in ("strong", "weak")]
            lines.append(f"| {label} | {rows[0]['slots']} | " + " | ".join(map(_signal, rows)) + " |")
    common = {
        share: [record["all"][f"{judge}/8/{share}"]["four"]["cosine"] for judge in ("strong", "weak")]
        for share in ("0.3", "0.6")
    }
    said = "; ".join(f"{float(s):.0%}: {a:.3f} strong, {b:.3f} weak" for s, (a, b) in common.items())
    lines += ["", f"Four passes where a share of the error is the same in every pass: {said}."]
    return "\n".join(lines)


def _signal(row: dict[str, Any]) -> str:
    low, high = row["ci95"]
    return f"{row['cosine']:.3f} ({low:.3f} .. {high:.3f}) | {row['mixed']:.3f} | {row['equal']:.2f}"


def injection(record: dict[str, Any]) -> str:
    """Recall and false alarms by half, and what stays inside."""
    lines = ["| half | attacks found | clean texts flagged |", "|---|---|---|"]
    for half, found in record["attacks"].items():
        clean = record["clean"][half]
        name = half.replace("_", " ")
        lines.append(f"| {name} | {found['found']} of {found['of']} | {clean['flagged']} of {clean['of']} |")
    kept = record["kept_inside_their_block"]
    return "\n".join([*lines, "", f"{kept['kept']} of {kept['of']} attacks stay inside their own block."])


def against_art(record: dict[str, Any]) -> str:
    """Right, wrong and error, case by case, and tokens."""
    sides = {side: record[side] for side in ("ours", "theirs")}
    said = "; ".join(
        f"{side} right {n['right']}, wrong {n['wrong']}, error {n['error']}" for side, n in sides.items()
    )
    lines = [
        f"{record['cases']} cases ({record['release']}): {said}.",
        "",
        "| case | ours | theirs |",
        "|---|---|---|",
    ]
    lines += [f"| {row['case']} | {row['ours']} | {row['theirs']} |" for row in record["table"]]
    lines += ["", "| prompt tokens, eight members, about 1,000 shared | ours | theirs |", "|---|---|---|"]
    lines += [f"| {name} | {n['ours']} | {n['theirs']} |" for name, n in record["prompt_tokens_of"].items()]
    return "\n".join(lines)


TABLES: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "bounds": ("judge_bounds", bounds),
    "speed": ("grpo_step_trl", speed),
    "speed_short": ("grpo_step_trl", speed_short),
    "tree_update": ("tree_update", tree_update),
    "growth": ("growth", growth),
    "ppo_memory": ("ppo_memory", ppo_memory),
    "judge_signal": ("judge_signal", judge_signal),
    "injection": ("injection", injection),
    "against_art": ("against_art", against_art),
    "soak": ("soak", _soak_table.soak),
    "rlvr_tasks": ("rlvr_tasks", _rlvr_tables.tasks),
    "prompt_learning": ("prompt_learning", _prompt_tables.prompt_learning),
    "universal": ("universal_verifier_simulated", _universal_tables.universal),
}
"""Marker -> the result file and what is made of it."""


OF_SEEDS: dict[str, Callable[[], str]] = {
    "constitution": _constitution_tables.runs,
    "demo": demo,
    "prompt_embedded": _prompt_embedded_tables.prompt_embedded,
    "rlvr": _rlvr_tables.seeds,
    "rlvr_short": _rlvr_tables.in_short,
    "rlhf": _rlhf_tables.seeds,
    "rlhf_steps": _rlhf_tables.steps,
    "rlhf_short": _rlhf_tables.in_short,
}
"""Marker -> what is made of one result file a seed."""


def table(name: str) -> str:
    if name in OF_SEEDS:
        return OF_SEEDS[name]()
    file, make = TABLES[name]
    path = RESULTS / f"{file}.json"
    return make(json.loads(path.read_text())) if path.exists() else "Not measured yet."


def main() -> None:
    for page in PAGES:
        text = page.read_text()
        for name in (*OF_SEEDS, *TABLES):
            start, end = f"<!-- results:{name} -->\n", f"<!-- /results:{name} -->"
            before, found, rest = text.partition(start)
            if found:
                text = f"{before}{start}{table(name)}\n{end}{rest.partition(end)[2]}"
        page.write_text(text)


if __name__ == "__main__":
    main()
