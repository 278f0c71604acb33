"""A prompt that was learned: its lessons, where each comes from, and how it did on scenarios that decided nothing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groundrule.viewer.markup import Html, details, join, table, tag

Record = Mapping[str, Any]


def learned_prompt(state: Record, final: Sequence[Record]) -> list[Html | None]:
    """Nothing for a run that learns no prompt; see `prompt_learning.learner.LearnerState` for the records."""
    versions = (state.get("pool") or {}).get("versions") or []
    if not versions:
        return []
    head = next(version for version in versions if version["number"] == state["pool"]["head"])
    return [
        _final(final[-1]) if final else None,
        _lessons(head, versions),
        details("Every version", _versions(versions, head)),
    ]


def _gain(version: Record) -> float:
    gains = version["gains"].values()
    return sum(gains) / len(gains) if gains else 0.0


def _final(record: Record) -> Html:
    if record.get("same_prompt"):
        return tag(
            "p", "No lesson was accepted, so there is nothing to compare with the prompt at the start."
        )
    found = record.get("difference")
    if not found:
        return tag("p", "The final test gave no scores for both prompts.")
    ends = "" if found["low"] is None else f" (95 %: {found['low']:+.3f} to {found['high']:+.3f})"
    return tag(
        "p",
        tag("strong", f"{found['value']:+.3f}"),
        f"{ends} in the judge's scores on {record['scenarios']} scenarios that decided nothing: better on "
        f"{record['better']}, worse on {record['worse']}.",
    )


def _lessons(head: Record, versions: Sequence[Record]) -> Html:
    if not head["playbook"]:
        return tag("p", "The prompt has no lessons.")
    return join(_lesson(number, lesson, versions) for number, lesson in enumerate(head["playbook"], start=1))


def _lesson(number: int, lesson: Record, versions: Sequence[Record]) -> Html:
    """Its words, and behind a click what caused it."""
    touched = [version for version in versions if version["lesson"] == lesson["id"]]
    evidence = [contrast for version in touched for contrast in version["evidence"]]
    counts = f"better on {lesson['helpful']} test scenarios, worse on {lesson['harmful']}"
    return details(
        [f"{number}. {lesson['text']} ", tag("small", counts)],
        [tag("p", _how(version)) for version in touched],
        [_contrast(contrast) for contrast in evidence],
    )


def _how(version: Record) -> str:
    edit = version["edit"] or {}
    why = f" because {edit['rationale']}" if edit.get("rationale") else ""
    return f"Round {version['round']}, {version['how']}{why}. {_test(version)}"


def _contrast(contrast: Record) -> Html:
    rows = [
        (f"{side} ({contrast[f'{side}_score']:.2f})", contrast[side], contrast[f"{side}_explanation"])
        for side in ("best", "worst")
    ]
    return join([tag("p", tag("small", contrast["task"])), table(["", "answer", "the judge"], rows)])


def _versions(versions: Sequence[Record], head: Record) -> Html:
    rows = [
        (
            f"{version['number']}{' (current)' if version is head else ''}",
            "" if version["parent"] is None else str(version["parent"]),
            version["how"],
            str(len(version["playbook"])),
            f"{_gain(version):+.3f}",
            " ".join([(version["edit"] or {}).get("action", ""), version["lesson"] or ""]),
            _test(version),
        )
        for version in versions
    ]
    return table(["version", "from", "how", "lessons", "gain", "edit", "test"], rows)


def _test(version: Record) -> str:
    looks = (version["test"] or {}).get("looks") or []
    if not looks:
        return ""
    last = looks[-1]
    return f"{last['mean']:+.3f} on {last['scenarios']} scenarios, p {last['p']:.2g} of {last['level']:.2g}"
