"""Several verified answers to each held-out problem, before and after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from groundrule.data.evaluation import right_rates
from groundrule.viewer.intervals import Change, paired_change


def verified_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[tuple[str, Change]]:
    """pass@k and the vote; pass@1 is compared problem by problem, which gives it an interval."""
    first, last = before.get("attempts"), after.get("attempts")
    if not first or not last:
        return
    rates, later = right_rates(first), right_rates(last)
    pairs = [(rates[name], later[name]) for name in rates if name in later]
    if change := paired_change(pairs, name="pass@1"):
        yield "pass@1", change
    ends = {f"pass@{k}": (value, last["pass_at"].get(k)) for k, value in first["pass_at"].items() if k != "1"}
    ends[f"maj@{first['attempts']}"] = first["majority"], last["majority"]
    for name, (start, end) in ends.items():
        if start is not None and end is not None:
            yield name, Change(start, end, 0)


def label_of(name: str) -> str | None:
    """What such a measure is called; None for any other."""
    kind, _, count = name.partition("@")
    if kind == "pass" and count.isdigit():
        return "pass@1: a sampled answer is right" if count == "1" else f"{name}: one of {count} is right"
    return f"{name}: the result given most often is right" if kind == "maj" and count.isdigit() else None
