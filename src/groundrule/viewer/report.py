"""`write_report`: a run folder as one page that needs nothing else, not even a network."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from groundrule._util.files import write_atomic
from groundrule._util.look import with_palette
from groundrule.data.runs import Run
from groundrule.viewer.costs import costs
from groundrule.viewer.curves import charts, every_number
from groundrule.viewer.exploitation import exploitation
from groundrule.viewer.groups import all_steps
from groundrule.viewer.held_out import compare, headline, measures_table, side_by_side, spec_effect
from groundrule.viewer.judged import judged
from groundrule.viewer.lessons import learned_prompt
from groundrule.viewer.markup import Html, details, join, tag
from groundrule.viewer.notices import notices
from groundrule.viewer.steps import Step

_SECRET = ("key", "token", "secret", "password")


def write_report(folder: str | Path) -> Path:
    """Write `report.html` into the run folder, from its files only; a run under way can be looked at."""
    run = Run.open(folder, read_only=True)
    path = run.folder / "report.html"
    # Half a surrogate pair in an answer has no place in UTF-8.
    write_atomic(path, render_report(run).encode("utf-8", "replace"))
    return path


def render_report(run: Run) -> str:
    """The page as text."""
    steps = [Step(number, run.groups(number)) for number in run.trajectory_steps()]
    evaluations, metrics = run.evaluations(), run.metrics()
    comparison = compare(evaluations)
    scores = judged(run.config, steps, metrics)
    result = [headline(comparison), measures_table(comparison)] if comparison else []
    prompt = learned_prompt(run.state, run.evaluations("final"))
    sections = [
        _section("Result", result),
        _section("The prompt", prompt),
        _section(
            "What to know", [notices(steps, comparison, exploitation(scores), is_compared=bool(prompt))]
        ),
        _section("Curves", [charts(steps, evaluations, scores), every_number(metrics)]),
        _section("What the system prompt does", [spec_effect(evaluations[-1]) if evaluations else None]),
        _section("Before and after", [side_by_side(comparison) if comparison else None]),
        _section("Every step", [all_steps(steps)] if steps else []),
        _section("Cost", [costs(run.costs(), metrics)]),
        _section("Configuration", [_configuration(run.config)]),
    ]
    title = _title(run)
    return Template(_asset("page.html")).substitute(
        title=join([title]),
        style=with_palette(_asset("report.css")),
        header=_header(title, run),
        main=join(sections),
    )


def _asset(name: str) -> str:
    return resources.files("groundrule.viewer").joinpath("assets", name).read_text("utf-8")


def _section(title: str, parts: list[Html | None]) -> Html | None:
    return tag("section", tag("h2", title), parts) if any(parts) else None


def _title(run: Run) -> str:
    run_part = run.config.get("run") if isinstance(run.config.get("run"), Mapping) else {}
    names = [str(name) for key in ("project", "name") if (name := (run_part or {}).get(key))]
    return " / ".join(names) or run.folder.resolve().name


def _header(title: str, run: Run) -> Html:
    planned = _find(run.config, "learn.rounds", "train.steps", "steps")
    facts = {
        "Model": _find(run.config, "policy.model", "policy.base_model", "policy.name", "model", "base_model"),
        "Judge": _judge(run.config),
        "Verifier": _find(run.config, "judge.verifier"),
        "Scenarios": _find(run.config, "scenarios.source", "scenarios.path", "scenarios.set", "scenarios"),
        "Steps": f"{run.step} of {planned}" if planned else str(run.step),
        "Started": _written(run.folder / "config.json"),
        "Last step": _written(run.folder / "state.json") if run.step else None,
    }
    shown = [tag("div", tag("dt", name), tag("dd", str(value))) for name, value in facts.items() if value]
    return tag("header", tag("p", "Training report", class_="over"), tag("h1", title), tag("dl", shown))


def _judge(config: Mapping[str, Any]) -> str | None:
    """The judge's name, where one was asked."""
    if _find(config, "judge.verifier") and _find(config, "judge.combine") == "verifier":
        return None
    return _find(config, "judge.model", "judge.name", "judge")


def _find(config: Mapping[str, Any], *paths: str) -> str | None:
    """The first of these that the configuration has, as text."""
    for path in paths:
        value: Any = config
        for name in path.split("."):
            value = value.get(name) if isinstance(value, Mapping) else None
        if value is not None and not isinstance(value, Mapping):
            return ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return None


def _written(path: Path) -> str:
    return f"{datetime.fromtimestamp(path.stat().st_mtime, UTC):%-d %B %Y, %H:%M} UTC"


def _configuration(config: Mapping[str, Any]) -> Html | None:
    if not config:
        return None
    text = json.dumps(_without_secrets(config), indent=2, ensure_ascii=False)
    return details("As resolved at the start", tag("pre", text))


def _without_secrets(value: Any) -> Any:
    """Values under names such as `api_key` are hidden; a page is easily passed on."""
    if isinstance(value, Mapping):
        hidden = {k: v for k, v in value.items() if isinstance(v, str) and k.lower().endswith(_SECRET)}
        return {k: "(hidden)" if k in hidden else _without_secrets(v) for k, v in value.items()}
    return [_without_secrets(v) for v in value] if isinstance(value, list) else value
