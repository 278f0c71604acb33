"""`groundrule reward-bench [FILE]`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from groundrule.cli.tables import show


@click.command("reward-bench")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option(
    "--reward", required=True, help="rag, my_rewards.py:function, module:scorer, or a judge by name."
)
@click.option("--against", help="Another reward to measure beside it.")
@click.option("--area", help="Only this area of the suite or file.")
@click.option(
    "--at-once", default=8, show_default=True, type=click.IntRange(min=1), help="Groups scored at once."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def command(
    file: Path | None, reward: str, against: str | None, area: str | None, at_once: int, as_json: bool
) -> None:
    """Measure a reward on answers whose order is known, before anything is trained on it.

    FILE is a JSONL file of groups with labels, as `judge-eval` reads them; without it the built-in suite is
    used. Exit code 1 when something is flagged.
    """
    from groundrule._util.aio import run_sync
    from groundrule.recipes.judge_eval.report import chosen
    from groundrule.recipes.reward_bench import bench_reward
    from groundrule.recipes.reward_bench.tables import bench_closing, bench_tables
    from groundrule.rewards.functions import scorer_of, weights_of
    from groundrule.rewards.suites import known_suite, read_labelled

    known = list(known_suite()) if file is None else read_labelled(file).groups
    groups = chosen(known, area=area, limit=None, seed=0)
    reports = []
    for name in [reward, *([against] if against else [])]:
        scorer = scorer_of(name)
        reports.append(
            run_sync(bench_reward(name, scorer, groups, weights=weights_of(scorer), at_once=at_once))
        )
    if as_json:
        click.echo(json.dumps([report.to_json() for report in reports], ensure_ascii=False, indent=2))
    else:
        source = "the known-answer suite" if file is None else str(file)
        click.echo(f"{' against '.join(r.name for r in reports)} on {source}: {len(groups)} groups")
        show(bench_tables(reports), bench_closing(reports))
    if any(report.flags for report in reports):
        raise click.exceptions.Exit(1)
