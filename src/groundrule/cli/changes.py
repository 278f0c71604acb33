"""Options of every verb that takes a configuration: its folder, its seed, and any single value."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click


def with_changes(command: Callable[..., None]) -> Callable[..., None]:
    """Add `--run`, `--seed` and `--set`; the command gets `folder`, `seed` and `changes`."""
    for option in (
        click.option(
            "--set", "changes", multiple=True, metavar="SECTION.KEY=VALUE", help="Change one value."
        ),
        click.option("--seed", type=int, help="Instead of run.seed."),
        click.option("--run", "folder", type=click.Path(path_type=Path), help="The run folder."),
    ):
        command = option(command)
    return command


def changes_of(changes: Sequence[str], *, folder: Path | None, seed: int | None) -> dict[str, Any]:
    """By dotted name, as a configuration is loaded with them."""
    given: dict[str, Any] = dict(map(_parse, changes))
    for name, value in {"run.folder": folder and str(folder), "run.seed": seed}.items():
        if value is not None:
            given[name] = value
    return given


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
