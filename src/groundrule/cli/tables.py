"""Tables for a reader: drawn on a terminal, plain columns elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

    from groundrule.recipes.judge_eval.tables import Table


def wide_console() -> Console:
    """A terminal as wide as it is; elsewhere 100 columns, so that a table that is kept in a log stays one."""
    from rich.console import Console

    return Console(width=None if Console().is_terminal else 100)


def number(value: float | None) -> str:
    """Three places, and a dash for what is not known."""
    return "-" if value is None else f"{value:.3f}"


def show(tables: Sequence[Table], closing: Sequence[str], out: Path | None = None) -> None:
    """The tables, then the closing lines, then where the scored groups are."""
    from rich.console import Console

    console = Console()
    for table in tables:
        if console.is_terminal:
            console.print(_rich(table))
        else:
            _plain(table)
    click.echo()
    for line in closing:
        click.echo(line)
    if out:
        click.echo(f"scored groups: {out}")


def _rich(table: Table) -> Any:
    from rich.markup import escape
    from rich.table import Table as RichTable

    drawn = RichTable(title=table.title, title_justify="left")
    for column in table.columns:
        drawn.add_column(column)
    for row in table.rows:
        drawn.add_row(*map(escape, row))
    return drawn


def _plain(table: Table) -> None:
    """Columns parted by two blanks; the last one may be as long as it likes."""
    lines = [table.columns, *table.rows]
    widths = [max(len(line[i]) for line in lines) for i in range(len(table.columns))]
    click.echo(f"\n{table.title}:")
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
