"""`groundrule constitution CONFIG.toml`, and `groundrule constitution check FILE` and `show NAME`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from groundrule.cli.chains import chain_options, run_chain
from groundrule.cli.changes import changes_of
from groundrule.cli.tables import number, wide_console

RUN = "run"


class RunUnlessNamed(click.Group):
    """A group whose sub-verb may be left out: `constitution CONFIG.toml` is `constitution run CONFIG.toml`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *self.get_help_option_names(ctx)}:
            args = [RUN, *args]
        return super().parse_args(ctx, args)


@click.group("constitution", cls=RunUnlessNamed)
def command() -> None:
    """Train a model by written principles: `groundrule constitution CONFIG.toml`, or one of the commands below."""


@command.command(RUN)
@click.argument("config", type=click.Path(path_type=Path))
@chain_options(
    "answers",
    "revisions",
    "sft",
    "samples",
    "preferences",
    "rankings",
    "reward-model",
    "ppo",
    "dpo",
    "evaluation",
)
def run(config: Path, folder: Path | None, seed: int | None, changes: tuple[str, ...], **chosen: Any) -> None:
    """Revise answers by principles, learn the revisions, compare answers by the principles, learn the preferences.

    Stages that are done are not done again; the same command goes on where it was stopped.
    """
    from groundrule.recipes.constitution.chain import run_constitution
    from groundrule.recipes.constitution.config import load_constitutional_config

    checked = load_constitutional_config(config, changes_of(changes, folder=folder, seed=seed))
    run_chain(checked, run_constitution, show=_show, **chosen)


@command.command("check")
@click.argument("file")
def check(file: str) -> None:
    """Read a constitution and say what is in it, or what is wrong with it, with the line."""
    from groundrule.rewards import Constitution

    found = Constitution.load(file)
    tags = sorted({tag for principle in found.principles for tag in principle.tags})
    click.echo(
        f"{found.name}: {len(found.principles)} principles, {len(found.exemplars)} exemplars, "
        f"tags {', '.join(tags) or 'none'}, content {found.content_hash}"
    )


@command.command("show")
@click.argument("name")
def show(name: str) -> None:
    """Print the principles of a constitution: a ready one by its name, or a file."""
    from groundrule.rewards import Constitution

    found = Constitution.load(name)
    click.echo(f"{found.name}: {found.description}".removesuffix(": "))
    for principle in found.principles:
        tags = f" [{', '.join(principle.tags)}]" if principle.tags else ""
        click.echo(f"\n{principle.id}{tags}, weight {principle.weight:g}")
        click.echo(f"  critique: {principle.critique_request}")
        click.echo(f"  revision: {principle.revision_request}")
        click.echo(f"  question: {principle.comparison_question}")


def _show(results: dict[str, Any]) -> None:
    if revisions := results.get("revisions"):
        click.echo(_revisions_line(revisions))
    if preferences := results.get("preferences"):
        _show_preferences(preferences)


def _revisions_line(revisions: dict[str, Any]) -> str:
    left_out = [f"{count} {why}" for why, count in revisions["left_out"].items()]
    if revisions["failed"]:
        left_out.append(f"{len(revisions['failed'])} prompts failed: {revisions['failed'][0]}")
    said = f"; left out: {', '.join(left_out)}" if left_out else ""
    return f"revisions: {revisions['revisions']} in {revisions['rounds']} rounds{said}"


def _show_preferences(preferences: dict[str, Any]) -> None:
    from rich.table import Table

    mass = (
        "" if preferences["mass"] is None else f", A and B had {preferences['mass']:.2f} of the probability"
    )
    table = Table(
        title=f"{preferences['comparisons']} comparisons, {preferences['ties']} ties, "
        f"{len(preferences['failed'])} failed; {preferences['sampled']:.0%} by samples{mass}",
        title_justify="left",
    )
    for column in ("principle", "comparisons", "first wins", "certainty", "orders agree"):
        table.add_column(column, justify="left" if column == "principle" else "right")
    for name, row in preferences["principles"].items():
        table.add_row(
            name,
            str(row["comparisons"]),
            *(number(row[key]) for key in ("win_rate", "certainty", "orders_agree")),
        )
    wide_console().print(table)
