"""`groundrule score FILE.jsonl`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from groundrule.data.group import TrajectoryGroup


@click.command("score")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--judge", default="local/likelihood", show_default=True, help="Who scores, by name.")
@click.option("--rubric", type=click.Path(path_type=Path), help="A text file with further criteria.")
@click.option(
    "--passes", default=1, show_default=True, type=click.IntRange(min=1), help="Readings, in changing order."
)
@click.option(
    "--checklist",
    metavar="FILE|auto",
    help="Judge criteria one by one: from a file, or made from the system prompt.",
)
@click.option(
    "--out", type=click.Path(path_type=Path), help="Where the scored groups go. [FILE.scored.jsonl]"
)
@click.option(
    "--at-once", default=8, show_default=True, type=click.IntRange(min=1), help="Groups judged at once."
)
def command(
    file: Path,
    judge: str,
    rubric: Path | None,
    passes: int,
    checklist: str | None,
    out: Path | None,
    at_once: int,
) -> None:
    """Score every group of FILE and write them with their rewards.

    Exit code 1 when any group stayed without scores; those are named.
    """
    from groundrule._util.aio import run_sync
    from groundrule._util.progress import settle_all
    from groundrule.data.records import read_groups, write_groups
    from groundrule.errors import DataError
    from groundrule.llm.cost import current_ledger
    from groundrule.rewards import DEFAULT_RUBRIC, Checklist, Ruler
    from groundrule.rewards.apply import apply_scores

    groups = read_groups(file)
    if not groups:
        raise DataError("holds no groups", path=file)
    text = DEFAULT_RUBRIC if rubric is None else _read(rubric)
    demands = checklist if checklist in (None, "auto") else Checklist.load(checklist)
    ruler = Ruler(judge, rubric=text, passes=passes, checklist=demands)  # type: ignore[arg-type]
    scores = run_sync(settle_all([ruler.score(g) for g in groups], desc="score", at_once=at_once))
    scored = [apply_scores(g, said, name="ruler") for g, said in zip(groups, scores, strict=True)]
    target = out or file.with_suffix(".scored.jsonl")
    write_groups(target, scored)
    unscored = [i for i, g in enumerate(scored) if not g.scored]
    for index, group in enumerate(scored):
        click.echo(_line(index, group))
    total = current_ledger().total()
    click.echo(f"{len(scored) - len(unscored)} of {len(scored)} groups scored -> {target}; {total}")
    if unscored:
        first = scored[unscored[0]]
        reason = first.trajectories[0].unscored if first.trajectories else "the group is empty"
        click.echo(f"error: group {_name(unscored[0], first)} has no scores: {reason}", err=True)
        raise click.exceptions.Exit(1)


def _line(index: int, group: TrajectoryGroup) -> str:
    rewards = ["none" if r is None else f"{r:.3f}" for r in group.rewards]
    return f"{_name(index, group)}: {' '.join(rewards)}"


def _name(index: int, group: TrajectoryGroup) -> str:
    return group.scenario_id or f"#{index + 1}"


def _read(path: Path) -> str:
    from groundrule.errors import ConfigError

    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"the rubric {path} cannot be read: {error}") from error
