"""The table and the picture of `prompt_learning.py`."""

from __future__ import annotations

from typing import Any

from groundrule.viewer.charts import HEIGHT, WIDTH, Series, drawing
from groundrule.viewer.markup import tag

LOOKS = {"lessons": "one", "best-of-n": "two", "gepa": "three"}
_STYLE = (
    "text{font:11px sans-serif;fill:#555}.title{font-weight:bold}.grid{stroke:#ddd}"
    ".line{fill:none;stroke-width:1.5}.one{stroke:#1f6feb;fill:#1f6feb}.two{stroke:#d1570a;fill:#d1570a}"
    ".three{stroke:#2d8a4e;fill:#2d8a4e}.line{fill:none}.band{stroke:none;opacity:.25}"
    "text.one,text.two,text.three{stroke:none}"
)


def prompt_learning(record: dict[str, Any]) -> str:
    """The methods, then the attack."""
    methods, lines = record["methods"], []
    lines += [
        f"{record['runs']} simulated worlds, {record['budget']:,} rollouts each, 95 % intervals in brackets (`python "
        "benchmarks/prompt_learning.py --runs 200`):",
        "",
        f"| | {' | '.join(methods)} |",
        "|---" * (len(methods) + 1) + "|",
    ]
    rows = {
        "rollouts until 95 % of the best value, median": lambda m: _until(m),
        "runs that got there": lambda m: _share(m["reached"]),
        "runs with a lesson that does not help": lambda m: _share(m["with_unhelpful"]),
        "... a useless one": lambda m: _share(m["with"]["useless"]),
        "... a harmful one": lambda m: _share(m["with"]["harmful"]),
        "... one that lowers the bar": lambda m: _share(m["with"]["lowering"]),
        "helpful lessons kept, of 5": lambda m: _mean(m["helpful_kept"]),
        "final value, of the best": lambda m: _mean(m["value_over_best"], 3),
        "the worst run's": lambda m: f"{m['least_value_over_best']:.3f}",
        "rollouts made": lambda m: f"{m['rollouts']['mean']:,.0f}",
        "groups judged": lambda m: f"{m['judged_groups']['mean']:,.0f}",
        "calls of the writer": lambda m: f"{m['written']['mean']:,.0f}",
    }
    lines += [f"| {name} | {' | '.join(cell(m) for m in methods.values())} |" for name, cell in rows.items()]
    lines += [
        "",
        "A writer that proposes only lessons that lower the bar, for twelve rounds:",
        "",
        "| what keeps them out | runs in which one was accepted | refused | tested |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {arm} | {_share(found['accepted'])} | {found['refused']:,} | {found['tests']:,} |"
        for arm, found in record["attack"].items()
    ]
    return "\n".join(lines)


def picture(record: dict[str, Any]) -> str:
    """Both curves side by side, as a file of its own."""
    panels = {
        "true value of the shipped prompt, of the best": ("curve", "mean"),
        "share of runs that ship a lesson that does not help": ("unhelpful_curve", "share"),
    }
    parts = [tag("style", _STYLE), tag("rect", width="100%", height="100%", fill="white")]
    for column, (title, (curve, middle)) in enumerate(panels.items()):
        left = column * (WIDTH + 20)
        series = [
            _series(name, found[curve], middle, record["every"]) for name, found in record["methods"].items()
        ]
        parts.append(tag("text", title, x=left + 12, y=18, class_="title"))
        parts += [
            tag("text", one.name, x=left + 44 + 110 * i, y=36, class_=one.style)
            for i, one in enumerate(series)
        ]
        parts.append(
            drawing(
                title,
                series,
                x_name="rollouts",
                showing=(0.0, 1.0) if middle == "share" else (1.0,),
                x=left,
                y=44,
                width=WIDTH,
                height=HEIGHT,
            )
        )
    size = {"viewBox": f"0 0 {2 * WIDTH + 20} {HEIGHT + 50}"}
    return str(tag("svg", parts, xmlns="http://www.w3.org/2000/svg", **size))


def _series(name: str, curve: list[dict[str, Any]], middle: str, every: int) -> Series:
    return Series(
        name,
        [(i * every, one[middle]) for i, one in enumerate(curve)],
        LOOKS[name],
        [(i * every, *one["ci95"]) for i, one in enumerate(curve)],
    )


def _until(method: dict[str, Any]) -> str:
    found = method["rollouts_until_reached"]["median"]
    return "more than half did not get there" if found is None else f"{found:,.0f}"


def _share(rate: dict[str, Any]) -> str:
    low, high = rate["ci95"]
    return f"{rate['hits']} of {rate['of']} ({low:.1%} .. {high:.1%})"


def _mean(found: dict[str, Any], digits: int = 2) -> str:
    low, high = found["ci95"]
    return f"{found['mean']:.{digits}f} ({low:.{digits}f} .. {high:.{digits}f})"
