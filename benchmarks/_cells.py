"""Rows and cells of the tables of chains: a column a run, policies against the start, values with their intervals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any


def table_row(name: str, found: Sequence[Any], cell: Callable[[Any], str]) -> str:
    """A cell for each run."""
    return f"| {name} | " + " | ".join(cell(item) for item in found) + " |"


def policy_rows(title: str, parts: Sequence[dict[str, Any]]) -> list[str]:
    """What judges and checks say of one policy, a part a run."""
    rows = []
    for judge, said in parts[0]["judges"].items():
        name = f"**{title}**, {judge} ({said['role']})"
        rows.append(table_row(name, parts, lambda p, judge=judge: difference(p["judges"][judge])))
        rows.append(
            table_row("... wins", parts, lambda p, judge=judge: interval(p["judges"][judge]["win_rate"]))
        )
    rows += [
        table_row(f"**{title}**, {check}", parts, lambda p, check=check: difference(p["checks"][check]))
        for check in parts[0]["checks"]
    ]
    return rows


def change(compared: dict[str, Any]) -> str:
    """From the start to the policy."""
    return f"{compared['first']:.2f} -> {compared['second']:.2f}"


def difference(compared: dict[str, Any]) -> str:
    """The same with the interval of the difference, where there is one."""
    low, high = compared["difference"]["low"], compared["difference"]["high"]
    return change(compared) if low is None else f"{change(compared)} ({low:+.2f} .. {high:+.2f})"


def interval(measured: dict[str, float | None]) -> str:
    """A value with its interval, where there is one."""
    value, low, high = measured["value"], measured["low"], measured["high"]
    if value is None:
        return "-"
    return f"{value:.2f}" if low is None else f"{value:.2f} ({low:.2f} .. {high:.2f})"


def minutes(run: dict[str, Any], *stages: str) -> str:
    """Of these stages together; a dash where one of them was not timed."""
    if any(name not in run["seconds"] for name in stages):
        return "-"
    return f"{sum(run['seconds'][name] for name in stages) / 60:.1f}"
