"""`groundrule train CONFIG.toml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command("train")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--steps", type=click.IntRange(min=1), help="Train to this step instead of train.steps.")
@click.option("--run", "folder", type=click.Path(path_type=Path), help="The run folder.")
@click.option("--seed", type=int, help="Instead of run.seed.")
@click.option("--set", "changes", multiple=True, metavar="SECTION.KEY=VALUE", help="Change one value.")
def command(
    config: Path, steps: int | None, folder: Path | None, seed: int | None, changes: tuple[str, ...]
) -> None:
    """Train a model as CONFIG says. The same command resumes an interrupted run."""
    from groundrule._util.aio import run_sync
    from groundrule.recipes.config import load_config
    from groundrule.recipes.train_rl import train_rl
    from groundrule.viewer.report import write_report

    given: dict[str, Any] = dict(_parse(change) for change in changes)
    for name, value in {"train.steps": steps, "run.folder": folder and str(folder), "run.seed": seed}.items():
        if value is not None:
            given[name] = value
    checked = load_config(config, given)
    click.echo(f"run folder: {checked.folder}")
    run = run_sync(train_rl(checked, report=click.echo))
    click.echo(f"report: {write_report(run)}")


def _parse(change: str) -> tuple[str, Any]:
    """`train.steps=3` as name and TOML value; text needs no quotes."""
    import tomllib

    name, separator, text = change.partition("=")
    if not separator or "." not in name:
        raise click.BadParameter(f"{change!r} is not SECTION.KEY=VALUE", param_hint="--set")
    try:
        return name, tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return name, text
