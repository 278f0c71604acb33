"""`groundrule checklist PROMPT.txt`."""

from __future__ import annotations

from pathlib import Path

import click


@click.command("checklist")
@click.argument("prompt", type=click.Path(path_type=Path))
@click.option("--judge", required=True, help="A judge that reads, by name.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="A .toml or .json file to edit and to name in judge.checklist. [shown only]",
)
def command(prompt: Path, judge: str, out: Path | None) -> None:
    """List the demands of the system prompt in PROMPT, as a judge reads them.

    The list is made once for a prompt and kept in the reply cache.
    """
    from groundrule._util.aio import run_sync
    from groundrule.errors import DataError
    from groundrule.rewards import extract_checklist

    try:
        spec = prompt.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"the system prompt cannot be read: {error}", path=prompt) from error
    checklist = run_sync(extract_checklist(spec, judge))
    click.echo(str(checklist))
    if out is not None:
        checklist.save(out)
        click.echo(f"-> {out}")
