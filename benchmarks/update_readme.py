"""Write the measured tables of README.md from `results/*.json`, between their markers.

python benchmarks/update_readme.py
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from _machine import RESULTS

from groundrule.recipes.demo import CHECKS

README = Path(__file__).parent.parent / "README.md"

LABELS = {"judge": "judge (trained on)", **CHECKS}


def demo() -> str:
    seeds = [json.loads(p.read_text()) for p in sorted(RESULTS.glob("demo-seed*.json"))]
    if not seeds:
        return "Not measured yet."
    measured = seeds[0]["measured"]
    lines = [
        f"{seeds[0]['questions']} held-out questions, {seeds[0]['steps']} steps, before -> after "
        f"(interval of the difference), measured with `python benchmarks/demo_seeds.py` at commit "
        f"{measured['commit']} on {measured['cores']} cores ({measured['cpu']}):",
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


def bounds() -> str:
    path = RESULTS / "judge_bounds.json"
    if not path.exists():
        return "Not measured yet."
    record = json.loads(path.read_text())
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


def grpo_step() -> str:
    path = RESULTS / "grpo_step_plain.json"
    if not path.exists():
        return "Not measured yet."
    record = json.loads(path.read_text())
    lines = [
        "One GRPO update of SmolLM2-135M with LoRA against a plain full-sequence update on the same tokens "
        f"(`python benchmarks/grpo_step.py --against plain`, CPU seconds, median of {record['runs']} runs, "
        "least and most in brackets):",
        "",
        "| prompt | answers | ours | plain | ratio |",
        "|---|---|---|---|---|",
    ]
    for case in record["cases"]:
        ours, plain = (f"{case[s]['median']} [{case[s]['min']}, {case[s]['max']}]" for s in ("ours", "plain"))
        lines.append(
            f"| {case['prompt']} | {case['answers']} x {case['tokens']} | {ours} | {plain} | {case['ratio']} |"
        )
    return "\n".join(lines)


def main() -> None:
    text = README.read_text()
    for name, make in {"demo": demo, "bounds": bounds, "grpo_step": grpo_step}.items():
        start, end = f"<!-- results:{name} -->\n", f"<!-- /results:{name} -->"
        before, _, rest = text.partition(start)
        text = f"{before}{start}{make()}\n{end}{rest.partition(end)[2]}"
    README.write_text(text)


if __name__ == "__main__":
    main()
