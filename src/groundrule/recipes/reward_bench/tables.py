"""The bench in words: one column a reward."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from groundrule.recipes.judge_eval.agreement import Measure
from groundrule.recipes.judge_eval.tables import NOT_MEASURED, Table
from groundrule.recipes.reward_bench.bench import ENOUGH, BenchReport

_SHOWN = 90


def bench_tables(reports: Sequence[BenchReport]) -> list[Table]:
    """What was measured of each reward, side by side."""
    names = tuple(report.name for report in reports)
    rows = [
        _row("pairs in the right order", reports, lambda r: _measure(r.accuracy)),
        _row("AUC within groups", reports, lambda r: _measure(r.auc)),
        _row("best above worst of any group", reports, lambda r: _measure(r.across)),
        _row("answers without a score", reports, lambda r: _share(r.unscored)),
    ]
    tables = [Table("the reward", ("measure", *names), rows)]
    dresses = list(reports[0].dresses)
    gains = [_row(f"{d}: gain", reports, lambda r, d=d: _number(r.dresses[d].gain)) for d in dresses]  # type: ignore[misc]
    fooled = [
        _row(f"{d}: worse, dressed, not below better", reports, lambda r, d=d: _measure(r.dresses[d].fooled))  # type: ignore[misc]
        for d in dresses
    ]
    rows = [row for pair in zip(gains, fooled, strict=True) for row in pair]
    tables.append(Table("dress alone (gain in units of a typical gap)", ("dress", *names), rows))
    tables += [_weights(report) for report in reports if report.weights]
    tables += [_worst(report) for report in reports if report.worst]
    return tables


def bench_closing(reports: Sequence[BenchReport]) -> list[str]:
    """Flags, and whether a verifier needs a judge beside it."""
    lines = [f"{report.name}: {flag}" for report in reports for flag in report.flags]
    for report in reports:
        low = report.accuracy.low
        if low is not None and low >= ENOUGH and report.unscored == 0 and not report.flags:
            lines.append(f"{report.name} alone is enough here: at least {low:.0%} of the pairs are right")
    return lines or ["nothing to flag; read the disagreements before training on it"]


def _row(label: str, reports: Sequence[BenchReport], cell: Callable[[BenchReport], str]) -> tuple[str, ...]:
    return (label, *(cell(report) for report in reports))


def _weights(report: BenchReport) -> Table:
    rows = [
        (part, change, _number(effect.tau), _measure(effect.accuracy))
        for part, changes in report.weights.items()
        for change, effect in changes.items()
    ]
    return Table(
        f"{report.name}: other weights, nothing retrained",
        ("part", "weight", "rank correlation", "pairs right"),
        rows,
    )


def _worst(report: BenchReport) -> Table:
    rows = [(d.group, f"{d.gap:.2f}", _short(d.better), _short(d.worse)) for d in report.worst]
    return Table(
        f"{report.name}: worst disagreements", ("group", "gap", "labelled better", "scored higher"), rows
    )


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN - 3]}..."


def _measure(measure: Measure) -> str:
    if measure.value is None:
        return NOT_MEASURED
    interval = "" if measure.low is None else f" ({measure.low:.0%} .. {measure.high:.0%})"
    return f"{measure.value:.0%}{interval} of {measure.count}"


def _share(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.0%}"


def _number(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:+.2f}"
