"""Every group of every step: its prompt once, its answers ranked by reward."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import Message, text_of
from groundrule.data.scenario import QUESTION_LABEL
from groundrule.data.trajectory import Trajectory
from groundrule.viewer.markup import Html, details, join, tag
from groundrule.viewer.numbers import plural, shown
from groundrule.viewer.steps import Step, explanation_of, is_tied, ranked, was_cut

MOST_ANSWERS = 6000
"""A page with more than this is slow to open; steps in the middle are left out then, and it says so."""


def all_steps(steps: Sequence[Step]) -> Html:
    """One closed part per step."""
    kept = _kept(steps)
    left_out = len(steps) - len(kept)
    note = f"{plural(left_out, 'step')} in between left out, to keep this page small; see trajectories/."
    return join([tag("p", note, class_="quiet") if left_out else None, [_step(step) for step in kept]])


def _kept(steps: Sequence[Step]) -> list[Step]:
    """All steps, or as many evenly spaced ones, first and last included, as the page can hold."""
    answers = sum(len(group) for step in steps for group in step.groups)
    if answers <= MOST_ANSWERS:
        return list(steps)
    count = max(2, len(steps) * MOST_ANSWERS // answers)
    chosen = {round(i * (len(steps) - 1) / (count - 1)) for i in range(count)}
    return [step for i, step in enumerate(steps) if i in chosen]


def _step(step: Step) -> Html:
    facts = [plural(len(step.groups), "group")]
    if step.mean is not None:
        facts.insert(0, f"mean reward {shown(step.mean)}")
    summary = [tag("b", f"Step {step.number}"), " ", tag("span", " · ".join(facts), class_="quiet")]
    return details(summary, [_group(group) for group in step.groups], class_="step")


def _group(group: TrajectoryGroup) -> Html:
    opening = _opening(group.trajectories[0]) if group.trajectories else []
    title = str(group.metadata.get("question") or _question(opening) or group.scenario_id or "A group")
    failures = [tag("li", str(e)) for e in group.exceptions]
    return tag(
        "article",
        tag("h4", title[:200], tag("span", group.scenario_id, class_="tag") if group.scenario_id else None),
        tag("p", "All answers got the same reward: nothing to learn here.", class_="notice")
        if is_tied(group)
        else None,
        _about_the_judge(group),
        tag("ol", [_answer(t, len(opening)) for t in ranked(group)], class_="answers"),
        tag("ul", failures, class_="failures") if failures else None,
        details("What the agent was given", [_message(m) for m in opening]) if opening else None,
        class_="card",
    )


def _about_the_judge(group: TrajectoryGroup) -> Html | None:
    """How often the group was read, and how far the readings agreed."""
    numbers = group.metrics
    said = []
    if numbers.get("judge/passes", 1) > 1:
        said.append(f"read {numbers['judge/passes']:.0f} times")
    if "judge_reliability" in numbers:
        said.append(f"reliability {shown(float(numbers['judge_reliability']))}")
    if numbers.get("judge/gated"):
        said.append(f"{numbers['judge/gated']:.0f} answers said nothing and were not shown to the judge")
    if numbers.get("judge/flagged"):
        said.append(f"{numbers['judge/flagged']:.0f} answers address the grader")
    return tag("p", " · ".join(said), class_="quiet") if said else None


def _question(opening: Sequence[Message]) -> str:
    """The line of the user's message that asks something, or its first line."""
    asked = next((text_of(m.get("content")) for m in reversed(opening) if m.get("role") == "user"), "")
    lines = [line.strip() for line in asked.splitlines() if line.strip()]
    labelled = [
        line.removeprefix(QUESTION_LABEL).strip() for line in lines if line.startswith(QUESTION_LABEL)
    ]
    asking = labelled or [line for line in lines if "?" in line] or lines[:1]
    return asking[-1] if asking else ""


def _opening(trajectory: Trajectory) -> list[Message]:
    """The messages before the agent's first turn."""
    messages = trajectory.messages()
    first = next((i for i, m in enumerate(messages) if m.get("role") == "assistant"), len(messages))
    return messages[:first]


def _answer(trajectory: Trajectory, opening: int) -> Html:
    said = trajectory.messages()[opening:]
    plain = len(said) == 1 and not said[0].get("tool_calls")
    body = [tag("p", _text(said[0]) or "(empty)", class_="text")] if plain else [_message(m) for m in said]
    why = trajectory.unscored or explanation_of(trajectory)
    return tag(
        "li",
        _reward(trajectory),
        tag("div", body, tag("p", why, class_="why") if why else None, class_="said"),
    )


def _reward(trajectory: Trajectory) -> Html:
    if trajectory.unscored is not None:
        number: Iterable[str | None] = [tag("span", "no score", class_="score none")]
    else:
        width = f"--w:{100 * min(1.0, max(0.0, trajectory.reward)):.0f}%"
        number = [
            tag("span", shown(float(trajectory.reward)), class_="score"),
            tag("i", style=width, class_="bar"),
        ]
    cut = tag("span", "cut", class_="tag", title="ended at the token limit") if was_cut(trajectory) else None
    return tag("div", number, cut, class_="reward")


def _message(message: Message) -> Html:
    calls = [tag("code", call) for call in _calls(message)]
    text = _text(message)
    return tag(
        "div",
        tag("h5", str(message.get("role", ""))),
        tag("p", text, class_="text") if text or not calls else None,
        [tag("p", call) for call in calls],
        class_="message",
    )


def _text(message: Message) -> str:
    return text_of(message.get("content")).strip()


def _calls(message: Message) -> Iterator[str]:
    for call in message.get("tool_calls") or []:
        function: Mapping[str, Any] = call.get("function") or {}
        arguments = function.get("arguments")
        written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        yield f"{function.get('name', '?')}({written})"
