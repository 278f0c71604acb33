"""Tables of a trained policy against the one that training began from."""

from __future__ import annotations

from typing import Any

import click

from groundrule.cli.tables import number, wide_console


def show_comparisons(evaluation: dict[str, Any]) -> None:
    """One table a policy."""
    for name, found in evaluation.get("policies", {}).items():
        _show_policy(name, found, evaluation)


def write_reports(results: dict[str, Any]) -> None:
    """Of every run folder among the stages."""
    from groundrule.viewer.report import write_report

    for stage in ("ppo", "dpo"):
        if stage in results:
            click.echo(f"report: {write_report(results[stage]['folder'])}")


def with_interval(measured: dict[str, Any], *, sign: str = "") -> str:
    """0.620 (0.550 .. 0.700)"""
    value, low, high = (measured[key] for key in ("value", "low", "high"))
    if value is None:
        return "-"
    if low is None:
        return f"{value:{sign}.3f}"
    return f"{value:{sign}.3f} ({low:{sign}.3f} .. {high:{sign}.3f})"


def _show_policy(name: str, found: dict[str, Any], evaluation: dict[str, Any]) -> None:
    from rich.table import Table

    drift = f"; KL {with_interval(found['kl_answer'])} nats an answer" if "kl_answer" in found else ""
    table = Table(
        title=f"{name} against the start: {evaluation['scenarios']} held-out scenarios x {evaluation['attempts']} "
        f"sampled answers{drift}",
        title_justify="left",
    )
    for column in ("", "start", name, "difference, 95 %", "wins, 95 %"):
        table.add_column(column, justify="left" if not column else "right")
    for judge, row in found["judges"].items():
        table.add_row(_label(judge, row["role"]), *_cells(row))
    for check, row in found["checks"].items():
        table.add_row(check, *_cells(row))
    wide_console().print(table)


def _label(judge: str, role: str) -> str:
    from rich.markup import escape

    named = "reward model" if judge.startswith("local/reward-model/") else judge
    return f"{escape(named)}\n({role})"


def _cells(row: dict[str, Any]) -> tuple[str, str, str, str]:
    if "first" not in row:
        return "-", "-", "no scores", "-"
    wins = with_interval(row["win_rate"]) if "win_rate" in row else ""
    return number(row["first"]), number(row["second"]), with_interval(row["difference"], sign="+"), wins
