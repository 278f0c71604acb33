"""`groundrule prefs from-run RUN`, `groundrule prefs check FILE` and `groundrule prefs convert FILE`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from groundrule.algorithms.agreement import Agreement, Measured
    from groundrule.algorithms.preference_summary import PreferenceSummary
    from groundrule.data.contradictions import Contradiction
    from groundrule.data.preferences import Ranking
    from groundrule.data.runs import Run

SHOWN = 5
"""Contradictions that are printed; all are in the JSON."""


@click.group("prefs")
def command() -> None:
    """Make, check and convert preferences: which answers people or judges put above others."""


@command.command("from-run")
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Where the rankings go.")
@click.option(
    "--margin",
    default=0.05,
    show_default=True,
    type=click.FloatRange(min=0),
    help="Scores closer than this are tied.",
)
@click.option("--steps", metavar="A-B", help="Only these steps. [all]")
def from_run(run: Path, out: Path, margin: float, steps: str | None) -> None:
    """Write the judged groups of a run folder as rankings, one group a line.

    What is in no ranking is counted. Exit code 1 when there is no pair to learn from.
    """
    from groundrule.data.judged_rankings import rankings_from_groups
    from groundrule.data.preference_records import write_rankings
    from groundrule.data.runs import Run

    opened = Run.open(run, read_only=True)
    chosen = _steps(opened, steps)
    judge, source = _judge(opened)
    groups = [group for step in chosen for group in opened.groups(step)]
    made = rankings_from_groups(groups, margin=margin, source=source, annotator=judge)
    for line in made.left_out:
        click.echo(f"left out: {line}")
    if not any(len(ranking.order) > 1 for ranking in made.rankings):
        click.echo(
            f"error: no pair of answers in {made.groups} groups is {margin} apart; nothing written", err=True
        )
        raise click.exceptions.Exit(1)
    write_rankings(out, made.rankings)
    click.echo(f"{_counts(made.rankings)} from {made.groups} groups of {len(chosen)} steps -> {out}")


def _steps(run: Run, wanted: str | None) -> list[int]:
    there = run.trajectory_steps()
    if wanted is None:
        return there
    first, _, last = wanted.partition("-")
    if not (first.isdecimal() and (last or first).isdecimal()) or wanted.endswith("-"):
        raise click.BadParameter(f"{wanted!r} is not A-B, such as 3-10, or one step", param_hint="--steps")
    chosen = [step for step in there if int(first) <= step <= int(last or first)]
    if not chosen:
        known = f"it has {there[0]} to {there[-1]}" if there else "it has none yet"
        raise click.BadParameter(
            f"{run.folder} has no groups of steps {wanted}; {known}", param_hint="--steps"
        )
    return chosen


def _judge(run: Run) -> tuple[str | None, str]:
    """Who gave the rewards, and what kind of judgement they are."""
    judge = run.config.get("judge")
    settings = judge if isinstance(judge, dict) else {}
    verifier = settings.get("verifier")
    if verifier and settings.get("combine") == "verifier":
        return verifier, "rule"
    return settings.get("model"), "ruler and rule" if verifier else "ruler"


@command.command("convert")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Where the preferences go.")
@click.option(
    "--to",
    default="rankings",
    show_default=True,
    type=click.Choice(["rankings", "pairs"]),
    help="pairs: prompt, chosen and rejected, as preference trainers read them.",
)
def convert(file: Path, out: Path, to: str) -> None:
    """Read FILE in any layout that is known and write it in one.

    Pairs carry margins, but neither ties nor scores.
    """
    from groundrule.data.preference_records import read_rankings, write_pairs, write_rankings

    rankings = read_rankings(file)
    if to == "rankings":
        write_rankings(out, rankings)
    else:
        write_pairs(out, (pair for ranking in rankings for pair in ranking.pairs()))
    click.echo(f"{_counts(rankings)} -> {out}")
    if to == "pairs" and (silent := sum(len(ranking.order) < 2 for ranking in rankings)):
        click.echo(f"{silent} rankings are all ties and gave no pair")


def _counts(rankings: list[Ranking]) -> str:
    pairs, ties = sum(len(r.pairs()) for r in rankings), sum(r.ties for r in rankings)
    return f"{len(rankings)} rankings with {pairs} pairs and {ties} ties"


@command.command("check")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="One JSON object on standard output.")
def check(file: Path, as_json: bool) -> None:
    """Say what FILE holds, whether it contradicts itself, and how far its annotators agree.

    Exit code 1 when one annotator's preferences contradict each other; nothing is changed.
    """
    from groundrule.algorithms.preference_summary import summarise
    from groundrule.data.preference_records import numbered_rankings

    numbered = list(numbered_rankings(file))
    summary = summarise([ranking for _, ranking in numbered])
    lines = [line for line, ranking in numbered for _ in ranking.pairs()]
    if as_json:
        record = summary.to_json()
        for contradiction, told in zip(summary.contradictions, record["contradictions"], strict=True):
            told["lines"] = _lines(contradiction, lines)
        click.echo(json.dumps(record, ensure_ascii=False, indent=2))
    else:
        for said in (*_about(summary), *_contradictions(summary.contradictions, lines)):
            click.echo(said)
    if summary.contradictions:
        raise click.exceptions.Exit(1)


def _about(s: PreferenceSummary) -> list[str]:
    said = [
        f"{s.rankings} rankings of {s.answers} answers to {s.prompts} prompts: {s.pairs} pairs "
        f"({s.with_margin} with a margin), {s.ties} ties",
        "annotators: " + ", ".join(f"{name} {count}" for name, count in s.annotators.items()),
        "sources: " + ", ".join(f"{name} {count}" for name, count in s.sources.items()),
    ]
    if s.length:
        said.append(
            f"length: chosen {s.length.chosen:.0f} characters, rejected {s.length.rejected:.0f}; the longer one is "
            f"chosen in {_share(s.length.longer_chosen)} (no bias: 50%)"
        )
    return [*said, *_agreement(s.agreement, s.wavering)]


def _agreement(a: Agreement | None, wavering: int) -> list[str]:
    if a is None:
        return ["agreement: not measured, no two named annotators compared the same answers"]
    said = [f"agreement of {a.annotators} annotators on {a.prompts} prompts, {a.comparisons} comparisons:"]
    said.append(f"  same order   {_share(a.same_order)} of the {a.both_order} that both order (chance: 50%)")
    said.append(f"  tau-b        {_number(a.tau_b)}")
    if a.kappa:
        said.append(f"  Cohen's kappa (better, tied, worse)   {_number(a.kappa)}")
    if a.alpha:
        said.append(f"  Krippendorff's alpha (ordinal)        {_number(a.alpha)}")
    if wavering:
        said.append(
            f"  {wavering} comparisons that one annotator made twice, with two results, are not counted"
        )
    return said


def _share(m: Measured) -> str:
    if m.value is None:
        return "no share"
    return f"{m.value:.0%}" + ("" if m.low is None or m.high is None else f" ({m.low:.0%} to {m.high:.0%})")


def _number(m: Measured) -> str:
    if m.value is None:
        return "not defined: all say the same one thing"
    return f"{m.value:.3f}" + ("" if m.low is None or m.high is None else f" ({m.low:.3f} to {m.high:.3f})")


def _contradictions(found: list[Contradiction], lines: list[int]) -> list[str]:
    if not found:
        return ["contradictions: none"]
    opposite = sum(c.is_opposite for c in found)
    said = [f"contradictions: {opposite} pairs in both directions, {len(found) - opposite} cycles"]
    said += [f"  lines {', '.join(map(str, _lines(c, lines)))}: {c}" for c in found[:SHOWN]]
    return [*said, *([f"  and {len(found) - SHOWN} more"] if len(found) > SHOWN else [])]


def _lines(contradiction: Contradiction, lines: list[int]) -> list[int]:
    """Where its pairs stand in the file."""
    return [lines[position] for position in contradiction.pairs]
