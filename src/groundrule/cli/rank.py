"""`groundrule rank FILE`."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from groundrule.ranking.tasks import Mode


@click.command("rank")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    help="Where the rankings go. [FILE.rankings.jsonl, or rankings.jsonl in a run]",
)
@click.option("--annotator", help="Who judges. [your login name]")
@click.option(
    "--mode",
    default="order",
    show_default=True,
    type=click.Choice(["order", "compare"]),
    help="All answers of a group at once, or every two of them.",
)
@click.option(
    "--port", default=0, show_default=True, type=click.IntRange(0, 65535), help="0 takes a free one."
)
@click.option("--seed", type=int, help="Of the order in which answers are shown. [the file's, or 0]")
@click.option("--open", "open_", is_flag=True, help="Open the page in a browser.")
def command(
    file: Path,
    out: Path | None,
    annotator: str | None,
    mode: Mode,
    port: int,
    seed: int | None,
    open_: bool,
) -> None:
    """Let a person put the answers of FILE into order, in a web page on this machine.

    FILE is a run folder, or a file of groups or of rankings. Answers are shown without scores and names, shuffled.
    Each judgement is saved at once; the same command goes on where it was stopped. Ctrl-C stops it.
    """
    from groundrule.inference.server import bound
    from groundrule.ranking.app import serve
    from groundrule.ranking.session import Session
    from groundrule.ranking.tasks import read_source

    source = read_source(file)
    for line in source.left_out:
        click.echo(f"left out: {line}")
    target = out or (file / "rankings.jsonl" if file.is_dir() else file.with_suffix(".rankings.jsonl"))
    with Session(source.asked, target, annotator=_name(annotator), mode=mode, seed=seed) as session:
        if session.current() is None:
            click.echo(f"all {len(session.tasks)} are judged by {session.annotator} -> {target}")
            return
        with bound("127.0.0.1", port) as listener:
            serve(session, listener, on_ready=lambda address: _ready(address, open_))
        click.echo(
            f"{session.done} of {len(session.tasks)} judged by {session.annotator} -> {target}"
            if session.done
            else "nothing judged, nothing written"
        )


def _ready(address: str, open_: bool) -> None:
    print(f"rank at {address}  (Ctrl-C stops)", flush=True)
    if open_ and click.launch(address) != 0:
        click.echo("no browser could be opened; open the address yourself", err=True)


def _name(given: str | None) -> str:
    name = (_login() if given is None else given).strip()
    if not name or not name.isprintable():
        raise click.BadParameter(f"{given!r} is no name; write who judges", param_hint="--annotator")
    return name


def _login() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # A container's user may have no name.
        raise click.BadParameter(
            "your login has no name; write who judges", param_hint="--annotator"
        ) from None
