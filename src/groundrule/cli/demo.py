"""`groundrule demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from groundrule.cli.tables import number, wide_console


@click.command("demo")
@click.option("--steps", default=8, show_default=True, type=click.IntRange(min=1), help="Training steps.")
@click.option("--seed", default=0, show_default=True, help="Decides scenarios, adapter and sampling.")
@click.option(
    "--run", "folder", type=click.Path(path_type=Path), help="The run folder. [runs/demo/support-seedN]"
)
def command(steps: int, seed: int, folder: Path | None) -> None:
    """Train the embedded model on built-in support questions and show what it learned.

    Needs no key and no network once the model is there. An interrupted demo goes on where it was.
    """
    from groundrule._util.aio import run_sync
    from groundrule.models import embedded
    from groundrule.recipes.demo import demo_config, run_demo
    from groundrule.viewer.report import write_report

    embedded.pull()
    config = demo_config(steps=steps, seed=seed, folder=str(folder) if folder else None)
    numbers = run_sync(run_demo(config, click.echo))
    _show(numbers)
    click.echo(f"report: {write_report(config.folder)}")


def _show(numbers: dict[str, Any]) -> None:
    from rich.table import Table

    from groundrule.recipes.demo import CHECKS

    table = Table(
        title=f"held-out: before -> after ({numbers['questions']} questions, {numbers['steps']} steps)"
    )
    for name, justify in (
        ("", "left"),
        ("before", "right"),
        ("after", "right"),
        ("difference, 95 %", "right"),
    ):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    labels = {"judge": "judge (trained on)", **CHECKS}
    for name, label in labels.items():
        row = numbers["rows"][name]
        table.add_row(
            label, number(row["before"]), number(row["after"]), _interval(row), end_section=name == "judge"
        )
    console = wide_console()
    console.print(table)
    for spec in (numbers.get("spec_effect") or {}).get("specs", []):
        console.print(
            f"spec effect, {spec['name']} system prompt: held-out score {number(spec['mean'])}, "
            f"order {' > '.join(spec['order'])}",
            soft_wrap=True,
        )


def _interval(row: dict[str, Any]) -> str:
    low, high = row["difference_ci95"]
    return "-" if low is None else f"{low:+.3f} .. {high:+.3f}"
