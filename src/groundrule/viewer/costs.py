"""What a run took: calls, tokens, money and time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groundrule.viewer.markup import Child, Html, join, table, tag
from groundrule.viewer.numbers import dollars, shown


def costs(calls: Sequence[Mapping[str, Any]], metrics: Sequence[Mapping[str, Any]]) -> Html:
    """Calls by purpose, and the time by what it went into."""
    spent = _calls(calls) if calls else tag("p", "No call of a remote model is recorded.", class_="quiet")
    return join([spent, _time(metrics)])


def _calls(calls: Sequence[Mapping[str, Any]]) -> Html:
    by_purpose: dict[str, list[Mapping[str, Any]]] = {}
    for call in calls:
        by_purpose.setdefault(str(call.get("purpose") or call.get("model") or "other"), []).append(call)
    rows = [_row(purpose, group) for purpose, group in by_purpose.items()]
    if len(rows) > 1:
        rows.append(_row("all", calls))
    return table(["Purpose", "Calls", "From cache", "Tokens in", "Tokens out", "Cost"], rows)


def _row(name: str, calls: Sequence[Mapping[str, Any]]) -> list[Child]:
    paid = [call for call in calls if not call.get("cached")]
    prices = [call.get("cost_usd") for call in paid]
    known = sum(price for price in prices if price is not None)
    unknown = prices.count(None)
    cost = (
        dollars(known)
        if not unknown
        else f"{dollars(known)} + {unknown} of unknown price"
        if known
        else "unknown"
    )
    tokens = [sum(call.get(key) or 0 for call in paid) for key in ("prompt_tokens", "completion_tokens")]
    return [name, shown(len(paid)), shown(len(calls) - len(paid)), *map(shown, tokens), cost]


def _time(metrics: Sequence[Mapping[str, Any]]) -> Html | None:
    names = dict.fromkeys(name for line in metrics for name in line if name.startswith("time/"))
    rows: list[list[Child]] = [
        [
            name.removeprefix("time/").removesuffix("_s").replace("_", " "),
            _minutes(sum(line.get(name) or 0 for line in metrics)),
        ]
        for name in names
    ]
    return table(["Time for", "Total"], rows) if rows else None


def _minutes(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
