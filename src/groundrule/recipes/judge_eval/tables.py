"""The reports in words: tables for a reader, as rows of plain text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from groundrule.llm.cost import Total
from groundrule.recipes.judge_eval.agreement import Measure
from groundrule.recipes.judge_eval.report import JudgeReport
from groundrule.recipes.judge_eval.stored import RunReport, SecondOpinion
from groundrule.recipes.judge_eval.verdict import THRESHOLDS, Findings, is_enough

NOT_MEASURED = "not measured"
_MOST_FAILURES = 5


@dataclass(frozen=True)
class Table:
    """A title, the names of the columns, and rows of as many cells."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def judge_tables(report: JudgeReport) -> list[Table]:
    """What was measured, by area and in all."""
    found = report.found
    tables = [
        Table("the judge", ("measure", "value", "95 %", "on", "wanted"), [*_order(found), *_rest(found)])
    ]
    if found.areas:
        tables.append(_areas(found))
    return tables


def judge_closing(report: JudgeReport) -> list[str]:
    """Failures, cost and the verdict, line by line."""
    found, verdict = report.found, report.verdict
    lines = [f"no score: {name}: {reason}" for name, reason in found.failures.groups[:_MOST_FAILURES]]
    if len(found.failures.groups) > _MOST_FAILURES:
        lines.append(f"no score: and {len(found.failures.groups) - _MOST_FAILURES} groups more")
    lines += [_cost(report.spent, found.groups), "", f"verdict: {verdict.decision}"]
    lines += [f"  - {reason}" for reason in verdict.reasons]
    if verdict.use_for:
        lines.append(f"  use it for: {', '.join(verdict.use_for)}")
    if verdict.avoid:
        lines.append(f"  not for: {', '.join(verdict.avoid)}")
    return lines


def run_tables(report: RunReport) -> list[Table]:
    """One row an alarm, raised ones first."""
    marks = {True: "!!", False: "ok", None: "--"}
    ordered = sorted(report.alarms, key=lambda alarm: (alarm.is_raised is not True, alarm.is_raised is None))
    rows = [(marks[a.is_raised], a.name, a.evidence, a.threshold) for a in ordered]
    return [Table(f"alarms, {report.steps} steps", ("", "alarm", "evidence", "raised by"), rows)]


def run_closing(report: RunReport) -> list[str]:
    """What to do about the alarms, and the second opinion."""
    lines = [f"{alarm.name}: {alarm.remedy}" for alarm in report.raised]
    if report.second is not None:
        lines += ["", *_second(report.second)]
    count = len(report.raised)
    return [*lines, "", f"{count} of {len(report.alarms)} alarms raised" if count else "no alarm raised"]


def _second(second: SecondOpinion) -> list[str]:
    pairs = second.pairs
    return [
        f"second opinion on {second.groups} groups: {_share(pairs.value)} of {pairs.count} clear pairs ordered "
        f"alike (95 %: {_interval(pairs)}), Kendall's tau-b {_number(second.tau_b.value)}",
        *[f"no score: {name}: {reason}" for name, reason in second.failures.groups[:_MOST_FAILURES]],
        _cost(second.spent, second.groups),
    ]


def _order(found: Findings) -> list[tuple[str, ...]]:
    at = THRESHOLDS
    return [
        _measure("pairs in the right order", found.pairs, "pairs", f"at least {at.good_pairs:.0%}"),
        (
            "Kendall's tau-b with the known order",
            _number(found.tau_b.value),
            _interval(found.tau_b, as_share=False),
            f"{found.tau_b.count} groups",
            "",
        ),
        _measure(
            "pairs turned by the system prompt", found.order_flips, "pairs", f"at least {at.min_flips:.0%}"
        ),
        _measure(
            "injected that overtake a better one",
            found.injection_wins,
            "answers",
            f"at most {at.max_injection_wins:.0%}",
        ),
        _measure("injected not above clean", found.injection, "answers", f"at least {at.min_injection:.0%}"),
        _measure("padded not above plain", found.padded, "answers", f"at least {at.min_padded:.0%}"),
    ]


def _rest(found: Findings) -> list[tuple[str, ...]]:
    at, seen = THRESHOLDS, found.consistency
    on = f"{seen.groups} groups"
    slot, length = seen.slot, found.length
    wanted_tie = None if found.gaps.ordered is None else at.max_tie * max(found.gaps.ordered, 0.0)
    return [
        ("distance of equal answers", _number(found.gaps.tied), "", "", _most(wanted_tie)),
        ("better minus worse", _number(found.gaps.ordered), "", "", ""),
        ("reliability, median", _number(seen.reliability), "", on, f"at least {at.min_reliability:.2f}"),
        ("pairs flipped in reverse order", _share(seen.flip_rate), "", on, f"at most {at.max_flip_rate:.0%}"),
        (
            "worth of the first place",
            _number(slot.slope if slot else None, signed=True),
            f"p {slot.p_value:.2g}" if slot else "",
            f"{slot.calls} pairs of calls" if slot else "",
            _most(at.max_slot),
        ),
        (
            "correlation with length",
            _number(length.judge if length else None, signed=True),
            "",
            f"known order {length.known:+.2f}" if length else "",
            f"at most {at.max_length_excess} above it",
        ),
        ("distance of two copies in a group", _number(found.twins.within), "", "", _most(at.max_twin_gap)),
        ("distance of the same group twice", _number(found.twins.again), "", "", ""),
        (
            "answers without a score",
            f"{found.failures.share:.1%}",
            "",
            f"{found.failures.members} answers",
            f"at most {at.max_unscored:.0%}",
        ),
    ]


def _areas(found: Findings) -> Table:
    rows = [
        (
            name,
            _share(area.pairs.value),
            _interval(area.pairs),
            f"{area.pairs.count} pairs, {area.groups} groups",
            "" if area.pairs.value is None else "yes" if is_enough(name, area.pairs) else "no",
        )
        for name, area in found.areas.items()
    ]
    return Table("by area", ("area", "right order", "95 %", "on", "enough"), rows)


def _measure(name: str, measure: Measure, unit: str, wanted: str) -> tuple[str, ...]:
    return name, _share(measure.value), _interval(measure), f"{measure.count} {unit}", wanted


def _interval(measure: Measure, *, as_share: bool = True) -> str:
    if measure.low is None or measure.high is None:
        return ""
    if as_share:
        return f"{measure.low:.0%} .. {measure.high:.0%}"
    return f"{measure.low:.2f} .. {measure.high:.2f}"


def _share(value: float | None) -> str:
    return NOT_MEASURED if value is None else f"{value:.0%}"


def _number(value: float | None, *, signed: bool = False) -> str:
    if value is None:
        return NOT_MEASURED
    return f"{value:+.2f}" if signed else f"{value:.2f}"


def _most(value: float | None) -> str:
    return "" if value is None else f"at most {value:.2f}"


def _cost(spent: Total, groups: int) -> str:
    if not spent.calls and not spent.cache_hits:
        return "cost: no call was made"
    if not spent.calls:
        return f"cost: nothing; all {spent.cache_hits} answers came from the cache"
    dollars = "unknown" if spent.cost_usd is None else f"${spent.cost_usd / groups:.5f}"
    cached = f" ({spent.cache_hits} more from the cache)" if spent.cache_hits else ""
    return (
        f"cost a group: {spent.calls / groups:.1f} calls, {spent.tokens / groups:,.0f} tokens, "
        f"{dollars}; in all {spent}{cached}"
    )
