"""`groundrule rlhf CONFIG.toml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from groundrule.cli.changes import changes_of, with_changes
from groundrule.cli.tables import number, wide_console


@click.command("rlhf")
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--until",
    metavar="STAGE",
    help="Stop after this stage: answers, rankings, reward-model, ppo, dpo or evaluation.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON object at the end.")
@with_changes
def command(
    config: Path,
    until: str | None,
    as_json: bool,
    folder: Path | None,
    seed: int | None,
    changes: tuple[str, ...],
) -> None:
    """Rank answers, train a reward model, train the policy by PPO or DPO, and compare it with the start.

    Stages that are done are not done again; the same command goes on where it was stopped.
    """
    import json

    from groundrule._util.aio import run_sync
    from groundrule.recipes.rlhf.chain import run_rlhf
    from groundrule.recipes.rlhf.config import load_rlhf_config

    checked = load_rlhf_config(config, changes_of(changes, folder=folder, seed=seed))
    click.echo(f"folder: {checked.folder}", err=as_json)
    results = run_sync(run_rlhf(checked, until=until, report=lambda line: click.echo(line, err=as_json)))
    if as_json:
        click.echo(json.dumps(results))
        return
    _show(results)
    for stage in ("ppo", "dpo"):
        if stage in results:
            _write_report(results[stage]["folder"])


def _write_report(folder: str) -> None:
    from groundrule.viewer.report import write_report

    click.echo(f"report: {write_report(folder)}")


def _show(results: dict[str, Any]) -> None:
    measured = results.get("reward-model", {}).get("evaluation")
    if measured:
        click.echo(f"reward model: {_accuracy(measured)}")
    evaluation = results.get("evaluation", {})
    for name, found in evaluation.get("policies", {}).items():
        _show_policy(name, found, evaluation)


def _accuracy(measured: dict[str, Any]) -> str:
    longer = measured["length"]["longer_is_better"]["value"]
    return (
        f"right on {_with_interval(measured['accuracy'])} of {measured['pairs']} pairs of answers to "
        f"{measured['prompts']} held-out prompts; the rule that longer is better on {number(longer)}"
    )


def _show_policy(name: str, found: dict[str, Any], evaluation: dict[str, Any]) -> None:
    from rich.markup import escape
    from rich.table import Table

    table = Table(
        title=f"{name} against the start: {evaluation['scenarios']} held-out scenarios x {evaluation['attempts']} "
        f"sampled answers; KL {_with_interval(found['kl_answer'])} nats an answer",
        title_justify="left",
    )
    for column in ("", "start", name, "difference, 95 %", "wins, 95 %"):
        table.add_column(column, justify="left" if not column else "right")
    for judge, row in found["judges"].items():
        label = f"{escape(judge)}\n({row['role']})"
        if "first" not in row:
            table.add_row(label, "-", "-", "no scores", "-")
            continue
        table.add_row(
            label,
            number(row["first"]),
            number(row["second"]),
            _with_interval(row["difference"], sign="+"),
            _with_interval(row["win_rate"]),
        )
    for check, row in found["checks"].items():
        table.add_row(
            check,
            number(row["first"]),
            number(row["second"]),
            _with_interval(row["difference"], sign="+"),
            "",
        )
    wide_console().print(table)


def _with_interval(measured: dict[str, Any], *, sign: str = "") -> str:
    """0.62 (0.55 .. 0.70)"""
    value, low, high = (measured[key] for key in ("value", "low", "high"))
    if value is None:
        return "-"
    if low is None:
        return f"{value:{sign}.3f}"
    return f"{value:{sign}.3f} ({low:{sign}.3f} .. {high:{sign}.3f})"
