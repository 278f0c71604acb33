"""`groundrule rlhf CONFIG.toml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from groundrule.cli.changes import changes_of, with_changes
from groundrule.cli.comparison import show_comparisons, with_interval, write_reports
from groundrule.cli.tables import number


@click.command("rlhf")
@click.argument("config", type=click.Path(path_type=Path))
@click.option(
    "--until",
    metavar="STAGE",
    help="Stop after this stage: answers, rankings, reward-model, ppo, dpo or evaluation.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON object at the end.")
@with_changes
def command(
    config: Path,
    until: str | None,
    as_json: bool,
    folder: Path | None,
    seed: int | None,
    changes: tuple[str, ...],
) -> None:
    """Rank answers, train a reward model, train the policy by PPO or DPO, and compare it with the start.

    Stages that are done are not done again; the same command goes on where it was stopped.
    """
    import json

    from groundrule._util.aio import run_sync
    from groundrule.recipes.rlhf.chain import run_rlhf
    from groundrule.recipes.rlhf.config import load_rlhf_config

    checked = load_rlhf_config(config, changes_of(changes, folder=folder, seed=seed))
    click.echo(f"folder: {checked.folder}", err=as_json)
    results = run_sync(run_rlhf(checked, until=until, report=lambda line: click.echo(line, err=as_json)))
    if as_json:
        click.echo(json.dumps(results))
        return
    if measured := results.get("reward-model", {}).get("evaluation"):
        click.echo(f"reward model: {_accuracy(measured)}")
    show_comparisons(results.get("evaluation", {}))
    write_reports(results)


def _accuracy(measured: dict[str, Any]) -> str:
    longer = measured["length"]["longer_is_better"]["value"]
    return (
        f"right on {with_interval(measured['accuracy'])} of {measured['pairs']} pairs of answers to "
        f"{measured['prompts']} held-out prompts; the rule that longer is better on {number(longer)}"
    )
