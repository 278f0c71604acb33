"""What every verb has that runs a chain of stages: where to stop, what to print, and how it ends."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any

import click

from groundrule.cli.changes import with_changes
from groundrule.cli.comparison import show_comparisons, write_reports


def chain_options(*stages: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add `--until` and `--json` to those of a configuration; the command gets `until` and `as_json`."""
    named = f"{', '.join(stages[:-1])} or {stages[-1]}"

    def added(command: Callable[..., None]) -> Callable[..., None]:
        command = with_changes(command)
        command = click.option(
            "--json", "as_json", is_flag=True, help="Print the results as one JSON object at the end."
        )(command)
        return click.option("--until", metavar="STAGE", help=f"Stop after this stage: {named}.")(command)

    return added


def run_chain(
    config: Any,
    chain: Callable[..., Coroutine[Any, Any, dict[str, Any]]],
    *,
    until: str | None,
    as_json: bool,
    show: Callable[[dict[str, Any]], None],
) -> None:
    """Run the stages; `show` prints what is particular to this chain before the tables of its policies."""
    from groundrule._util.aio import run_sync

    click.echo(f"folder: {config.folder}", err=as_json)
    results = run_sync(chain(config, until=until, report=lambda line: click.echo(line, err=as_json)))
    if as_json:
        click.echo(json.dumps(results))
        return
    show(results)
    show_comparisons(results.get("evaluation", {}))
    write_reports(results)
