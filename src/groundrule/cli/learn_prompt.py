"""`groundrule learn-prompt CONFIG.toml`."""

from __future__ import annotations

from pathlib import Path

import click

from groundrule.cli.changes import changes_of, with_changes


@click.command("learn-prompt")
@click.argument("config", type=click.Path(path_type=Path))
@click.option("--rounds", type=click.IntRange(min=1), help="Learn to this round instead of learn.rounds.")
@with_changes
def command(
    config: Path, rounds: int | None, folder: Path | None, seed: int | None, changes: tuple[str, ...]
) -> None:
    """Learn lessons below a system prompt as CONFIG says. The same command resumes an interrupted run."""
    from groundrule._util.aio import run_sync
    from groundrule.recipes.prompt_learning.config import load_prompt_config
    from groundrule.recipes.prompt_learning.files import PROMPT_FILE
    from groundrule.recipes.prompt_learning.run import learn_prompt
    from groundrule.recipes.prompt_learning.turns import learn_in_turns
    from groundrule.viewer.report import write_report

    given = changes_of(changes, folder=folder, seed=seed)
    if rounds is not None:
        given["learn.rounds"] = rounds
    checked = load_prompt_config(config, given)
    click.echo(f"run folder: {checked.folder}")
    if len(checked.learn.turns) > 1 or checked.learn.turns[0] != "prompt":
        run_sync(learn_in_turns(checked, report=click.echo))
        return
    run = run_sync(learn_prompt(checked, report=click.echo))
    click.echo(f"prompt: {run / PROMPT_FILE}; history: groundrule prompt log {run}")
    click.echo(f"report: {write_report(run)}")
