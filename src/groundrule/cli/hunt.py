"""`groundrule rubric hunt SCENARIOS.jsonl`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groundrule.cli.budgets import budget_of, with_budget
from groundrule.cli.verify import universal_verifier

if TYPE_CHECKING:
    from groundrule.rewards import UniversalVerifier
    from groundrule.rewards.universal.ploys import Hunt

ATTEMPTS, CASES, PROPOSED, COSTS = "attempts.jsonl", "cases.jsonl", "proposed.toml", "costs.jsonl"
"""In the folder of a hunt."""


@click.command("hunt")
@click.argument("file", metavar="SCENARIOS", type=click.Path(path_type=Path))
@click.option("--prover", required=True, help="Who writes the answers, by name.")
@click.option("--judge", help="Who reads for the verifier, by name.")
@click.option("--rubric", type=click.Path(path_type=Path), help="A rubric file for the verifier.")
@click.option("--layers", help="Some of check,reference,rubric. [all]")
@click.option("--second-judge", help="Who tells the truth where no check does, by name.")
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(min=1))
@click.option("--seed", default=0, show_default=True)
@click.option("--out", type=click.Path(path_type=Path), help="A folder. [SCENARIOS.hunt]")
@with_budget
def command(
    file: Path, judge: str | None, rubric: Path | None, layers: str | None, out: Path | None, **options: Any
) -> None:
    """Have a prover write wrong answers that the verifier is meant to accept, and say how often it does.

    The truth of an answer comes from a check in the metadata of its scenario: `truth`, which the verifier is not
    shown, or `check`. The verifier is that of `groundrule verify --kind universal`. Every attempt is kept at once in
    attempts.jsonl, and the same command goes on behind the last one. Wrong answers that were accepted stand in
    cases.jsonl, for `groundrule verify`, and in proposed.toml as pitfalls for the rubric.

    Exit code 1 when the budget does not suffice, or when no answer can be had.
    """
    from groundrule.errors import BudgetError, JudgeError
    from groundrule.llm.cost import Ledger, use_ledger

    verifier = universal_verifier(judge, rubric, layers, place="a hunt")
    folder = out or file.with_suffix(".hunt")
    limits = budget_of(options)
    with use_ledger(Ledger.reopened(folder / COSTS, budget=limits)) as ledger:
        found = _hunted(verifier, file, folder, **options)
    click.echo(str(found))
    if written := [str(folder / name) for name in (CASES, PROPOSED) if (folder / name).exists()]:
        click.echo(f"-> {', '.join(written)}")
    if found.stopped:
        raise BudgetError(
            f"the budget of the hunt is used up ({ledger}); raise it and start the same command again: it goes on from "
            "here"
        )
    if not found.ploys:
        raise JudgeError(f"no answer could be had and verified: {found.failed[0]}")


def _hunted(verifier: UniversalVerifier, file: Path, folder: Path, **options: Any) -> Hunt:
    """Run the rounds; whatever ends them, what was found is written."""
    from groundrule._util.aio import run_sync
    from groundrule._util.progress import progress_bar
    from groundrule.rewards import hunt
    from groundrule.rewards.universal.hunt_log import HuntLog
    from groundrule.rewards.universal.ploys import Ploy
    from groundrule.rollouts.scenarios import load_scenarios

    rounds = options.pop("rounds")
    scenarios = load_scenarios(file)
    log = HuntLog(folder / ATTEMPTS, scenarios, {**options, **_identity(verifier)})
    with progress_bar("hunt", 2 * rounds * len(scenarios) - len(log.ploys)) as bar:

        def keep(ploy: Ploy) -> None:
            log.add(ploy)
            bar.advance()

        try:
            return run_sync(
                hunt(verifier, scenarios=scenarios, rounds=rounds, done=log.ploys, on_each=keep, **options)
            )
        finally:
            if log.ploys:
                _write(log.found(), folder)


def _identity(verifier: UniversalVerifier) -> dict[str, Any]:
    """What tells one verifier from another."""
    rubric = getattr(verifier.rubric, "content_sha256", None)
    return {"judge": verifier.judge_model, "rubric": rubric, "layers": list(verifier.layers)}


def _write(found: Hunt, folder: Path) -> None:
    """Anew each time: files that an earlier hunt of other settings left would be taken for those of this one."""
    from groundrule._util.files import write_atomic

    for name in (CASES, PROPOSED):
        (folder / name).unlink(missing_ok=True)
    if found.successes:
        found.save_cases(folder / CASES)
    if patches := found.patches():
        write_atomic(folder / PROPOSED, patches)
