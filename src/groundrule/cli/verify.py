"""`groundrule verify FILE.jsonl`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from groundrule.cli.budgets import budget_of, with_budget

if TYPE_CHECKING:
    from groundrule.cli.kept_scores import KeptScores
    from groundrule.data.group import TrajectoryGroup
    from groundrule.data.protocols import Scorer
    from groundrule.data.score import Score, Scores
    from groundrule.llm.cost import Budget
    from groundrule.rewards import UniversalVerifier


@click.command("verify")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--kind",
    required=True,
    help="math, code, exact, regex, json_schema, rag, universal, my_rewards.py:function, or a judge by name.",
)
@click.option("--judge", help="universal: who reads, by name.")
@click.option("--rubric", type=click.Path(path_type=Path), help="universal: a rubric file.")
@click.option("--layers", help="universal: some of check,reference,rubric. [all]")
@click.option("--out", type=click.Path(path_type=Path), help="Where the scores go. [FILE.verified.jsonl]")
@click.option(
    "--at-once", default=4, show_default=True, type=click.IntRange(min=1), help="Records verified at once."
)
@with_budget
def command(
    file: Path,
    kind: str,
    judge: str | None,
    rubric: Path | None,
    layers: str | None,
    out: Path | None,
    at_once: int,
    **options: Any,
) -> None:
    """Score every answer of FILE and write it with its score.

    A line holds an `answer` with its `reference` (for code: `tests`), or is a group as `groundrule score` reads it,
    with the reference in its metadata. With --kind universal a `check` asks for a verifier by name, and what is left
    open is read by --judge, beside the reference and by the criteria of --rubric.

    Scores are kept as they are found, in FILE.verify until all are there: the same command goes on behind them.

    Exit code 1 when an answer has no score, the first is named, or when the budget does not suffice.
    """
    from groundrule._util import jsonl
    from groundrule.cli.kept_scores import KeptScores
    from groundrule.errors import ConfigError, DataError
    from groundrule.rewards.functions import scorer_of

    records = list(jsonl.read(file))
    if not records:
        raise DataError("holds no records", path=file)
    groups = [_group(record, file, line) for line, record in records]
    if kind == "universal":
        scorer: Scorer = universal_verifier(judge, rubric, layers, place="--kind universal")
    elif judge or rubric or layers:
        raise ConfigError(f"--judge, --rubric and --layers are for --kind universal, not for {kind}")
    else:
        scorer = scorer_of(kind)
    made_from = {
        "kind": kind,
        "judge": judge,
        "rubric": rubric and rubric.read_text("utf-8"),
        "layers": layers,
    }
    kept = KeptScores(file.with_suffix(".verify"), made_from)
    pairs = [(record, group) for (_, record), group in zip(records, groups, strict=True)]
    scored = _scored(scorer, pairs, kept, budget_of(options), at_once)
    target = out or file.with_suffix(".verified.jsonl")
    jsonl.write(
        target, [_written(r, g, s, kind) for (_, r), g, s in zip(records, groups, scored, strict=True)]
    )
    kept.remove()
    scores = [(line, score) for (line, _), given in zip(records, scored, strict=True) for score in given]
    known = [score.value for _, score in scores if score.value is not None]
    mean = f", mean {sum(known) / len(known):.3f}" if known else ""
    click.echo(f"{len(known)} of {len(scores)} answers have a score{mean} -> {target}")
    unknown = [(line, score.reason) for line, score in scores if score.value is None]
    if unknown:
        click.echo(f"error: line {unknown[0][0]} of {file} has no score: {unknown[0][1]}", err=True)
        raise click.exceptions.Exit(1)


def _scored(
    scorer: Scorer, pairs: list[tuple[Any, TrajectoryGroup]], kept: KeptScores, limits: Budget, at_once: int
) -> list[Scores]:
    """Of every record, what was known or is found now; raises `BudgetError` where the budget ends before."""
    from groundrule._util.aio import run_sync
    from groundrule._util.progress import settle_all
    from groundrule.data.score import Scores
    from groundrule.errors import BudgetError
    from groundrule.llm.cost import Ledger, use_ledger
    from groundrule.llm.watched import all_or_nothing

    async def one(record: Any, group: TrajectoryGroup) -> Scores | None:
        if (known := kept.of(record)) is not None:
            return known
        try:
            with all_or_nothing():
                found = await scorer.score(group)
        except BudgetError:
            return None
        kept.add(record, found)
        return found if isinstance(found, Scores) else Scores(found)

    with use_ledger(Ledger.reopened(kept.costs, budget=limits)) as ledger:
        found = run_sync(settle_all([one(*pair) for pair in pairs], desc="verify", at_once=at_once))
    scored = [scores for scores in found if scores is not None]
    if left := len(found) - len(scored):
        raise BudgetError(
            f"the budget of the verification is used up ({ledger}) before {left} of {len(pairs)} records; raise it and "
            f"start the same command again: it goes on from here ({kept.folder})"
        )
    return scored


def universal_verifier(
    judge: str | None, rubric: Path | None, layers: str | None, *, place: str
) -> UniversalVerifier:
    """As its options say; raises `ConfigError`, which names the place, where a judge is missing."""
    from groundrule.errors import ConfigError
    from groundrule.rewards import Rubric, UniversalVerifier
    from groundrule.rewards.universal.verdict import LAYERS

    wanted: Any = [layer.strip() for layer in layers.split(",")] if layers else LAYERS
    if judge is None and set(wanted) != {"check"}:
        raise ConfigError(f"{place} needs --judge NAME, or --layers check for what no judge has to read")
    return UniversalVerifier(
        Rubric.load(rubric) if rubric else None, judge_model=judge or "none", layers=wanted
    )


def _group(record: Any, file: Path, line: int) -> TrajectoryGroup:
    """A group as it is, or a plain answer as a group of one with everything else in its metadata."""
    from groundrule.data.group import TrajectoryGroup
    from groundrule.data.records import group_from
    from groundrule.data.trajectory import Trajectory
    from groundrule.errors import DataError

    if isinstance(record, dict) and "trajectories" in record:
        return group_from(record, path=file, line=line)
    if not isinstance(record, dict) or not isinstance(record.get("answer"), str):
        raise DataError(
            "has neither an 'answer' (a text) nor 'trajectories'; give one of them", path=file, line=line
        )
    before = (("system", record.get("system")), ("user", record.get("question")))
    asked = [{"role": role, "content": str(text)} for role, text in before if text]
    messages = [*asked, {"role": "assistant", "content": record["answer"]}]
    more = {name: value for name, value in record.items() if name != "answer"}
    return TrajectoryGroup([Trajectory(messages_and_choices=messages)], metadata=more)


def _written(record: Any, group: TrajectoryGroup, scores: list[Score], kind: str) -> Any:
    from groundrule.data.records import group_record
    from groundrule.rewards.apply import apply_scores

    if "trajectories" in record:
        return group_record(apply_scores(group, scores, name=kind.rpartition(":")[2].rpartition("/")[2]))
    [score] = scores
    said = {"score": score.value, "reason": score.reason, "explanation": score.explanation}
    return {**record, **said, **({"parts": score.parts} if score.parts else {})}
