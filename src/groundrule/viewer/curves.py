"""Curves: rewards of the steps, held-out measures, and every other number that was recorded."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

from groundrule.viewer.charts import Series, line_chart, sparkline
from groundrule.viewer.exploitation import exploitation_charts
from groundrule.viewer.held_out import checks_of
from groundrule.viewer.judged import Judged
from groundrule.viewer.markup import Html, details, tag
from groundrule.viewer.numbers import shown
from groundrule.viewer.steps import Step


def charts(steps: Sequence[Step], evaluations: Sequence[Mapping[str, Any]], judged: Judged) -> Html | None:
    """The charts that there are numbers for."""
    drawn = [
        line_chart("Training reward", [_rewards(steps)], note="mean, and the lowest to highest answer"),
        line_chart("Reward spread", [_spread(steps)], note="inside a group; without it nothing is learned"),
        *exploitation_charts(judged),
        line_chart(
            "Judge reliability", [_reliability(steps)], note="share of the spread that is not its noise"
        ),
        line_chart("Held-out score", _held_out(evaluations, lambda e: e.get("judge"), {"mean": "score"})),
        line_chart("Held-out checks", _held_out(evaluations, checks_of, _CHECKS)),
        line_chart("Sampled answers", _held_out(evaluations, _verified, _VERIFIED)),
    ]
    return tag("div", drawn, class_="charts") if any(drawn) else None


def _rewards(steps: Sequence[Step]) -> Series:
    scored = [(step, step.rewards, step.mean) for step in steps]
    return Series(
        "mean reward",
        [(step.number, mean) for step, _, mean in scored if mean is not None],
        band=[(step.number, min(rewards), max(rewards)) for step, rewards, _ in scored if rewards],
    )


def _spread(steps: Sequence[Step]) -> Series:
    return Series("spread", [(s.number, s.spread) for s in steps if s.spread is not None])


def _reliability(steps: Sequence[Step]) -> Series:
    """The mean over the groups of a step that were read more than once."""
    measured = [
        (
            s.number,
            [float(g.metrics["judge_reliability"]) for g in s.groups if "judge_reliability" in g.metrics],
        )
        for s in steps
    ]
    return Series("reliability", [(number, fmean(values)) for number, values in measured if values])


_CHECKS = {"facts": "facts", "grounded": "grounded", "copied": "copied"}
_VERIFIED = {"1": "pass@1", "majority": "majority vote", "most": "any right"}


def _verified(evaluation: Mapping[str, Any]) -> dict[str, Any]:
    """pass@1, the vote, and whether any of all attempts is right."""
    attempts = evaluation.get("attempts")
    if not attempts:
        return {}
    rates = attempts["pass_at"]
    return {
        "1": rates.get("1"),
        "majority": attempts["majority"],
        "most": rates.get(str(attempts["attempts"])),
    }


def _held_out(
    evaluations: Sequence[Mapping[str, Any]],
    part: Callable[[Mapping[str, Any]], Mapping[str, Any] | None],
    names: Mapping[str, str],
) -> list[Series]:
    """A line for each name, of what `part` finds in every evaluation."""
    series = []
    for (key, name), style in zip(names.items(), ("one", "two", "three"), strict=False):
        values = [(e.get("step", 0), (part(e) or {}).get(key)) for e in evaluations]
        series.append(Series(name, [(step, value) for step, value in values if value is not None], style))
    return series


def every_number(metrics: Sequence[Mapping[str, Any]]) -> Html | None:
    """A small line for each recorded number."""
    names = dict.fromkeys(name for line in metrics for name in line if name != "step")
    cells = [_small(name, [line[name] for line in metrics if _is_number(line.get(name))]) for name in names]
    shown_cells = [cell for cell in cells if cell]
    if not shown_cells:
        return None
    return details("Every recorded number", tag("div", shown_cells, class_="numbers"))


def _small(name: str, values: list[float]) -> Html | None:
    if not values:
        return None
    ends = f"{shown(values[0])} → {shown(values[-1])}" if len(values) > 1 else shown(values[0])
    line = sparkline(values) if len(values) > 1 else None
    return tag("div", tag("code", name), line, tag("span", ends, class_="quiet"))


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float)
