"""`groundrule rubric SPEC.txt`, `groundrule rubric check FILE`, and `groundrule rubric hunt SCENARIOS`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from groundrule.cli.hunt import command as hunt

if TYPE_CHECKING:
    from groundrule.data.scenario import Scenario
    from groundrule.rewards import Rubric

COMPILE = "compile"


class CompileUnlessNamed(click.Group):
    """A group whose sub-verb may be left out: `rubric SPEC.txt` is `rubric compile SPEC.txt`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *self.get_help_option_names(ctx)}:
            args = [COMPILE, *args]
        return super().parse_args(ctx, args)


@click.group("rubric", cls=CompileUnlessNamed)
def command() -> None:
    """Make a rubric: `groundrule rubric SPEC.txt --judge NAME`, check one, or hunt for what it lets pass."""


command.add_command(hunt)


@command.command(COMPILE)
@click.argument("spec", type=click.Path(path_type=Path))
@click.option("--judge", required=True, help="A strong judge that reads, by name.")
@click.option("--scenarios", type=click.Path(path_type=Path), help="A scenario file to take one task from.")
@click.option("--scenario", "scenario_id", help="Which of its scenarios, by id. [the first]")
@click.option("--out", type=click.Path(path_type=Path), help="A .toml file to edit. [shown only]")
def compile_(
    spec: Path, judge: str, scenarios: Path | None, scenario_id: str | None, out: Path | None
) -> None:
    """List the criteria by which answers under the system prompt in SPEC are judged.

    With a scenario they are those of that task, and its reference is used. The list is made once and kept in the reply
    cache. What is weak in it is said below it.
    """
    from groundrule._util.aio import run_sync
    from groundrule.errors import ConfigError, DataError
    from groundrule.rewards import compile_rubric

    if scenario_id is not None and scenarios is None:
        raise ConfigError(f"--scenario {scenario_id} needs --scenarios FILE to be found in")
    try:
        text = spec.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"the system prompt cannot be read: {error}", path=spec) from error
    task = _scenario(scenarios, scenario_id) if scenarios is not None else None
    rubric = run_sync(compile_rubric(text, judge, scenario=task))
    click.echo(str(rubric))
    _report(rubric)
    if out is not None:
        rubric.save(out)
        click.echo(f"-> {out}")


@command.command("check")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--freeze", is_flag=True, help="Write the file anew with the hash of what is in it now.")
def check(file: Path, freeze: bool) -> None:
    """Say what is weak in a rubric. Exit code 1 when something is."""
    from groundrule.rewards import Rubric

    rubric = Rubric.load(file, is_edited=freeze)
    weak = _report(rubric)
    if freeze:
        rubric.save(file)
    click.echo(f"{file}: {len(rubric.criteria)} criteria, content {rubric.content_sha256[:16]}")
    if weak:
        raise click.exceptions.Exit(1)


def _report(rubric: Rubric) -> int:
    """How many findings there are; each is a line."""
    from groundrule.rewards import lint_rubric

    found = lint_rubric(rubric)
    for finding in found:
        click.echo(f"! {finding}")
    return len(found)


def _scenario(path: Path, name: str | None) -> Scenario:
    from groundrule.errors import DataError
    from groundrule.rollouts.scenarios import load_scenarios

    scenarios = load_scenarios(path)
    found = scenarios[0] if name is None else next((s for s in scenarios if s.id == name), None)
    if found is None:
        raise DataError(f"has no scenario {name!r}; the first is {scenarios[0].id!r}", path=path)
    return found
