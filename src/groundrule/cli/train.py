"""`groundrule train CONFIG.toml`."""

from __future__ import annotations

from pathlib import Path

import click

from groundrule.cli.changes import changes_of, with_changes


@click.command("train")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--steps", type=click.IntRange(min=1), help="Train to this step instead of train.steps.")
@with_changes
def command(
    config: Path, steps: int | None, folder: Path | None, seed: int | None, changes: tuple[str, ...]
) -> None:
    """Train a model as CONFIG says. The same command resumes an interrupted run."""
    from groundrule._util.aio import run_sync
    from groundrule.recipes.config import load_config
    from groundrule.recipes.train_rl import train_rl
    from groundrule.viewer.report import write_report

    given = changes_of(changes, folder=folder, seed=seed)
    if steps is not None:
        given["train.steps"] = steps
    checked = load_config(config, given)
    click.echo(f"run folder: {checked.folder}")
    run = run_sync(train_rl(checked, report=click.echo))
    click.echo(f"report: {write_report(run)}")
