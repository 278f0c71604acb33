"""`groundrule doctor RUN`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("doctor")
@click.argument("run", type=click.Path(path_type=Path))
def command(run: Path) -> None:
    """Say why the run in folder RUN learned nothing, or too little. Exit code 1 when something is wrong."""
    from groundrule.recipes.doctor import examine

    findings = examine(run)
    for finding in findings:
        click.echo(f"{'!!' if finding.is_fault else 'ok'} {finding.text}")
    if any(finding.is_fault for finding in findings):
        raise click.exceptions.Exit(1)
