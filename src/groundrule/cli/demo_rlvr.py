"""`groundrule demo-rlvr`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from groundrule.cli.tables import number, wide_console


@click.command("demo-rlvr")
@click.option("--steps", default=20, show_default=True, type=click.IntRange(min=1), help="Training steps.")
@click.option("--seed", default=0, show_default=True, help="Decides scenarios, adapter and sampling.")
@click.option("--preset", default="dapo", show_default=True, help="A published variant of GRPO by name.")
@click.option(
    "--run", "folder", type=click.Path(path_type=Path), help="The run folder. [runs/demo-rlvr/sums-seedN]"
)
def command(steps: int, seed: int, preset: str, folder: Path | None) -> None:
    """Train the embedded model on sums by a verifier alone and show pass@k before and after.

    A short warm-up shows it how an answer is written and no sum of the problems. Needs no key and no network once the
    model is there. An interrupted demo goes on where it was.
    """
    from groundrule._util.aio import run_sync
    from groundrule.models import embedded
    from groundrule.recipes.rlvr_demo import rlvr_config, run_rlvr_demo
    from groundrule.viewer.report import write_report

    config = rlvr_config(steps=steps, seed=seed, preset=preset, folder=str(folder) if folder else None)
    embedded.pull()
    numbers = run_sync(run_rlvr_demo(config, click.echo))
    _show(numbers)
    click.echo(f"report: {write_report(config.folder)}")


def _show(numbers: dict[str, Any]) -> None:
    from rich.table import Table

    table = Table(
        title=f"held-out: before -> after ({numbers['problems']} problems x {numbers['attempts']} sampled answers, "
        f"{numbers['steps']} steps)"
    )
    for name in ("", "before", "after"):
        table.add_column(name, justify="left" if not name else "right")
    for name, (before, after) in numbers["rows"].items():
        table.add_row(name, number(before), number(after))
    console = wide_console()
    console.print(table)
    low, high = numbers["pass@1_difference_ci95"]
    console.print(f"pass@1 rose by {_rise(numbers):+.3f}, 95 % interval {low:+.3f} .. {high:+.3f}")


def _rise(numbers: dict[str, Any]) -> float:
    before, after = numbers["rows"]["pass@1"]
    return float(after - before)
