"""`groundrule view RUN`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("view")
@click.argument("run", type=click.Path(path_type=Path))
def command(run: Path) -> None:
    """Write report.html into the folder RUN: one page that needs nothing else."""
    from groundrule.viewer.report import write_report

    click.echo(str(write_report(run)))
