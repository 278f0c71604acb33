"""`groundrule rlhf CONFIG.toml`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from groundrule.cli.chains import chain_options, run_chain
from groundrule.cli.changes import changes_of
from groundrule.cli.comparison import with_interval
from groundrule.cli.tables import number


@click.command("rlhf")
@click.argument("config", type=click.Path(path_type=Path))
@chain_options("answers", "rankings", "reward-model", "ppo", "dpo", "evaluation")
def command(
    config: Path, folder: Path | None, seed: int | None, changes: tuple[str, ...], **chosen: Any
) -> None:
    """Rank answers, train a reward model, train the policy by PPO or DPO, and compare it with the start.

    Stages that are done are not done again; the same command goes on where it was stopped.
    """
    from groundrule.recipes.rlhf.chain import run_rlhf
    from groundrule.recipes.rlhf.config import load_rlhf_config

    checked = load_rlhf_config(config, changes_of(changes, folder=folder, seed=seed))
    run_chain(checked, run_rlhf, show=_show, **chosen)


def _show(results: dict[str, Any]) -> None:
    measured = results.get("reward-model", {}).get("evaluation")
    if measured:
        longer = measured["length"]["longer_is_better"]["value"]
        click.echo(
            f"reward model: right on {with_interval(measured['accuracy'])} of {measured['pairs']} pairs of answers to "
            f"{measured['prompts']} held-out prompts; the rule that longer is better on {number(longer)}"
        )
