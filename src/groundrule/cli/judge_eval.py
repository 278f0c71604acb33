"""`groundrule judge-eval [FILE | RUN]`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groundrule.cli.tables import show

if TYPE_CHECKING:
    from groundrule.rewards import Ruler
    from groundrule.rewards.suites import KnownGroup

SUITE = "the known-answer suite"


@click.command("judge-eval")
@click.argument("source", metavar="[FILE | RUN]", required=False, type=click.Path(path_type=Path))
@click.option("--judge", help="Who is measured, by name. [local/likelihood; with RUN: nobody]")
@click.option(
    "--passes", default=2, show_default=True, type=click.IntRange(min=1), help="Readings of each group."
)
@click.option("--seed", default=0, show_default=True, help="Decides orders and samples.")
@click.option("--area", help="Only this area of the suite or file.")
@click.option("--limit", type=click.IntRange(min=1), help="At most so many groups, drawn at random.")
@click.option(
    "--at-once", default=8, show_default=True, type=click.IntRange(min=1), help="Groups judged at once."
)
@click.option("--out", type=click.Path(path_type=Path), help="Where the scored groups go.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def command(
    source: Path | None,
    judge: str | None,
    passes: int,
    seed: int,
    area: str | None,
    limit: int | None,
    at_once: int,
    out: Path | None,
    as_json: bool,
) -> None:
    """Measure a judge on answers whose order is known, and say whether it can be believed.

    Without an argument the built-in suite is used; FILE is a JSONL file of groups with labels. For the folder
    of a RUN no judge is asked unless one is named: what the run left is searched for signs that its policy
    learned to please the judge only.

    Exit code 1 for a no-go or an alarm, 0 for go, also with limits.
    """
    if source is not None and source.is_dir():
        if area:
            raise click.BadParameter("a run has no areas", param_hint="--area")
        if out and not judge:
            raise click.BadParameter("a run is only judged where --judge names a judge", param_hint="--out")
        _run(source, judge and _ruler(judge, passes, seed), limit or 20, seed, at_once, out, as_json)
    else:
        _judge(source, judge or "local/likelihood", passes, seed, area, limit, at_once, out, as_json)


def _judge(
    source: Path | None,
    judge: str,
    passes: int,
    seed: int,
    area: str | None,
    limit: int | None,
    at_once: int,
    out: Path | None,
    as_json: bool,
) -> None:
    from groundrule._util.aio import run_sync
    from groundrule.data.records import write_groups
    from groundrule.recipes.judge_eval.report import chosen, measure_judge
    from groundrule.recipes.judge_eval.tables import judge_closing, judge_tables

    known, unlabelled = _groups(source)
    groups = chosen(known, area=area, limit=limit, seed=seed)
    report = run_sync(measure_judge(groups, _ruler(judge, passes, seed), at_once=at_once))
    if out:
        write_groups(out, report.scored)
    name = SUITE if source is None else str(source)
    if as_json:
        settings = {"judge": judge, "source": name, "passes": passes, "seed": seed, "unlabelled": unlabelled}
        click.echo(json.dumps({**settings, **report.to_json()}, ensure_ascii=False, indent=2))
    else:
        answers = sum(len(group.group) for group in groups)
        click.echo(f"{judge} on {name}: {len(groups)} groups, {answers} answers")
        if unlabelled:
            click.echo(f"{unlabelled} groups without labels are left out")
        show(judge_tables(report), judge_closing(report), out)
    if report.verdict.decision == "no-go":
        raise click.exceptions.Exit(1)


def _run(
    folder: Path, scorer: Any, limit: int, seed: int, at_once: int, out: Path | None, as_json: bool
) -> None:
    from groundrule._util.aio import run_sync
    from groundrule.data.records import write_groups
    from groundrule.recipes.judge_eval.stored import examine_run
    from groundrule.recipes.judge_eval.tables import run_closing, run_tables

    report = run_sync(examine_run(folder, scorer, limit=limit, seed=seed, at_once=at_once))
    if out and report.second:
        write_groups(out, report.second.scored)
    if as_json:
        click.echo(json.dumps(report.to_json(), ensure_ascii=False, indent=2))
    else:
        show(run_tables(report), run_closing(report), out)
    if report.raised:
        raise click.exceptions.Exit(1)


def _groups(source: Path | None) -> tuple[list[KnownGroup], int]:
    from groundrule.rewards.suites import known_suite, read_labelled

    if source is None:
        return list(known_suite()), 0
    labelled = read_labelled(source)
    return labelled.groups, labelled.unlabelled


def _ruler(judge: str, passes: int, seed: int) -> Ruler:
    """The judge as a training asks it, but for the gate: the judge itself is measured, not what protects it."""
    from groundrule.rewards import Ruler
    from groundrule.rewards.judges import judge_chain

    judge_chain(judge, None)
    return Ruler(judge, passes=passes, seed=seed, gate=False)
