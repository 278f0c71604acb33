"""The tables of docs/rlvr.md, made of `results/rlvr-seed*.json` and `results/rlvr_tasks.json`."""

from __future__ import annotations

from typing import Any

from _machine import commits_of, results_of_seeds


def in_short() -> str:
    """pass@1 of every seed, in a sentence."""
    found = results_of_seeds("rlvr")
    if not found:
        return "Not measured yet."
    said = ", ".join(f"{_change(s['rows']['pass@1'])} (rise {_interval(s)})" for s in found)
    minutes = [s["wall_s"] / 60 for s in found if s["wall_s"]]
    return (
        f"pass@1 on {found[0]['problems']} held-out sums, before -> after {found[0]['steps']} steps, seeds "
        f"{', '.join(str(s['seed']) for s in found)}: {said}; {min(minutes):.0f} to {max(minutes):.0f} minutes each on "
        "two cores."
    )


def seeds() -> str:
    """Before and after for every seed, the interval of pass@1, and how the answers changed on the way."""
    found = results_of_seeds("rlvr")
    if not found:
        return "Not measured yet."
    first, measured = found[0], found[0]["measured"]
    minutes = ", ".join(f"{s['wall_s'] / 60:.1f}" for s in found if s["wall_s"])
    warm = first["warm_up"]
    lines = [
        f"{first['problems']} held-out problems, {first['attempts']} answers to each at temperature 1, "
        f"{first['steps']} steps, preset `{first['preset']}`; before is after the warm-up on {warm['examples']} "
        f"examples. "
        f"`python benchmarks/rlvr_seeds.py` at commit {commits_of(found)} on {measured['cores']} cores "
        f"({measured['cpu']}):",
        "",
        "| | " + " | ".join(f"seed {s['seed']}" for s in found) + " |",
        "|---" * (len(found) + 1) + "|",
    ]
    for name in first["rows"]:
        lines.append(f"| {name} | " + " | ".join(_change(s["rows"][name]) for s in found) + " |")
    lines.append("| pass@1, 95 % interval of the rise | " + " | ".join(map(_interval, found)) + " |")
    lines += ["", f"Wall time of warm-up, training and both evaluations: {minutes} minutes."]
    lines += [
        "",
        "| step | " + " | ".join(f"seed {s['seed']}: reward, tokens, self-checks" for s in found) + " |",
    ]
    lines.append("|---" * (len(found) + 1) + "|")
    lines += [
        f"| {step + 1} | " + " | ".join(_at(s["by_step"], step) for s in found) + " |"
        for step in range(0, first["steps"], max(1, first["steps"] // 6))
    ]
    return "\n".join(lines)


def tasks(record: dict[str, Any]) -> str:
    """pass@1 and pass@16 of every task after every warm-up."""
    warm_ups = record["warm_ups"]
    lines = [
        f"pass@1 / pass@16 of {record['problems']} problems (`python benchmarks/rlvr_tasks.py`):",
        "",
        "| task | " + " | ".join(f"warm-up: {name}" for name in warm_ups) + " |",
        "|---" * (len(warm_ups) + 1) + "|",
    ]
    for task in next(iter(warm_ups.values())):
        cells = (f"{w[task]['pass@1']:.2f} / {w[task]['pass@16']:.2f}" for w in warm_ups.values())
        lines.append(f"| {task} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _change(pair: list[float | None]) -> str:
    before, after = ("-" if value is None else f"{value:.2f}" for value in pair)
    return f"{before} -> {after}"


def _interval(seed: dict[str, Any]) -> str:
    low, high = seed["pass@1_difference_ci95"]
    return f"{low:+.2f} .. {high:+.2f}"


def _at(by_step: dict[str, list[float]], step: int) -> str:
    return (
        f"{by_step['reward/mean'][step]:.2f}, {by_step['answers/tokens'][step]:.1f}, "
        f"{by_step['answers/self_check'][step]:.2f}"
    )
