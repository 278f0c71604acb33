"""`groundrule prompt log | show | diff | rollback RUN`: the versions of a prompt that was learned."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from groundrule.prompt_learning.versions import Version

_run = click.argument("run", type=click.Path(path_type=Path))


@click.group("prompt")
def command() -> None:
    """Read the versions of a prompt that `groundrule learn-prompt` has learned, and go back to one."""


@command.command("log")
@_run
def log(run: Path) -> None:
    """List the versions: from which, by which edit, and how its test went."""
    from rich.table import Table

    from groundrule.cli.tables import wide_console
    from groundrule.recipes.prompt_learning.history import read_history

    pool = read_history(run).pool
    table = Table()
    for column in ("version", "from", "round", "how", "lessons", "gain", "edit", "test"):
        table.add_column(column, justify="left" if column in ("how", "edit", "test") else "right")
    for version in pool.versions:
        table.add_row(
            f"{'*' if version is pool.head else ''}{version.number}",
            "" if version.parent is None else str(version.parent),
            str(version.round),
            version.how,
            str(len(version.playbook.lessons)),
            f"{version.gain:+.3f}",
            _edit(version),
            _test(version),
        )
    wide_console().print(table)
    click.echo("* the one in prompt.txt; gain is in scores of the judge, added up over tests")


@command.command("show")
@_run
@click.option("--version", "number", type=int, help="Instead of the current one.")
@click.option("--lesson", metavar="ID", help="Which groups and explanations a lesson comes from.")
def show(run: Path, number: int | None, lesson: str | None) -> None:
    """Print the prompt, or the evidence behind one of its lessons."""
    from groundrule.recipes.prompt_learning.history import read_history

    history = read_history(run)
    version = history.pool.head if number is None else history.pool[number]
    if lesson is None:
        click.echo(history.prompt(version))
        for one in version.playbook.lessons:
            click.echo(
                f"# {one.id}: better on {one.helpful} test scenarios, worse on {one.harmful}", err=True
            )
        return
    _show_lesson(history.pool.line_of(version.number), lesson)


@command.command("diff")
@_run
@click.argument("old", type=int)
@click.argument("new", type=int)
def diff(run: Path, old: int, new: int) -> None:
    """Print what changed between two versions."""
    from groundrule.recipes.prompt_learning.history import difference, read_history

    lines = list(difference(read_history(run), old, new))
    click.echo("\n".join(lines) or f"versions {old} and {new} read the same")


@command.command("rollback")
@_run
@click.argument("version", type=int)
def rollback(run: Path, version: int) -> None:
    """Go back to a version: it is written to prompt.txt, and the next round starts from it."""
    from groundrule.recipes.prompt_learning.history import go_back

    made = go_back(run, version)
    click.echo(f"version {made.number} is version {version} again, with {len(made.playbook.lessons)} lessons")


def _edit(version: Version) -> str:
    edit = version.edit
    if edit is None:
        return ""
    return f"{edit.action} {version.lesson}{': ' if edit.text else ''}{edit.text}"


def _test(version: Version) -> str:
    looks = version.test["looks"] if version.test else []
    if not looks:
        return ""
    last = looks[-1]
    return f"{last['mean']:+.3f} on {last['scenarios']}, p {last['p']:.2g} of {last['level']:.2g}"


def _show_lesson(line: list[Version], lesson: str) -> None:
    touched = [version for version in line if version.lesson == lesson]
    if not touched:
        known = [version.lesson for version in line if version.lesson]
        raise click.BadParameter(
            f"no version up to {line[-1].number} touched {lesson!r}; known: {', '.join(map(str, known)) or 'none'}",
            param_hint="--lesson",
        )
    for version in touched:
        click.echo(f"version {version.number}, round {version.round}: {_edit(version)}")
        if version.edit and version.edit.rationale:
            click.echo(f"  why: {version.edit.rationale}")
        click.echo(f"  test: {_test(version)}")
        for contrast in version.evidence:
            _show_contrast(contrast)


def _show_contrast(contrast: Any) -> None:
    click.echo(
        f"  {contrast['id']} (scenario {contrast['scenario_id']}, reliability {contrast['reliability']:.2f}): "
        f"{' '.join(contrast['task'].split())[:160]}"
    )
    for side in ("best", "worst"):
        answer = " ".join(contrast[side].split())[:240]
        click.echo(f"    {side} {contrast[f'{side}_score']:.2f}: {answer}")
        click.echo(f"      judge: {contrast[f'{side}_explanation'] or 'no explanation'}")
