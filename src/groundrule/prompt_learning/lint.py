"""What keeps a proposed lesson from being tested at all: cheap rules before dear rollouts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from groundrule.data.scenario import Scenario
from groundrule.prompt_learning.edits import Edit
from groundrule.prompt_learning.lowering import lowers_the_bar
from groundrule.prompt_learning.playbook import HEADING, Playbook
from groundrule.rewards.checks import content_words, words_of

MOST_WORDS = 45
"""About 60 tokens."""
MOST_LESSONS = 20
DUPLICATE = 0.6
"""Jaccard similarity of content words from which two lessons say the same."""
LEAKED_RUN = 6
"""Words in a row that stand in a scenario and not in the spec."""
_NUMBER_OR_NAME = re.compile(
    r"\d+(?:[.,:]\d+)+|\d{2,}|[\w.+-]+@[\w-]+\.[\w.-]+|https?://\S+|(?<![.!?:]\s)(?<!^)\b[A-Z][a-z]{2,}\b"
)


@dataclass(frozen=True)
class Leaks:
    """What the scenarios say, to be found again in a lesson that only repeats it."""

    runs: frozenset[tuple[str, ...]]
    details: frozenset[str]
    """Numbers, addresses and names of questions, passages and references that the spec does not have."""

    @classmethod
    def of(cls, scenarios: Iterable[Scenario], spec: str) -> Leaks:
        """From all scenarios, trained on or held out."""
        runs: set[tuple[str, ...]] = set()
        details: set[str] = set()
        for scenario in scenarios:
            texts = [scenario.question, scenario.context, scenario.reference or ""]
            texts += [form for forms in scenario.facts for form in forms]
            for text in texts:
                runs |= set(_runs(text))
                details |= set(_NUMBER_OR_NAME.findall(text))
        return cls(
            frozenset(runs - set(_runs(spec))), frozenset(details - set(_NUMBER_OR_NAME.findall(spec)))
        )

    def in_text(self, text: str) -> str | None:
        """What of a scenario stands in the text; None for nothing."""
        for run in _runs(text):
            if run in self.runs:
                return " ".join(run)
        return next((d for d in _NUMBER_OR_NAME.findall(text) if d in self.details), None)


def refusal_of(edit: Edit, playbook: Playbook, spec: str, leaks: Leaks) -> str | None:
    """Why an edit is not worth a test; None for one that is."""
    if not edit.fits(playbook):
        return f"there is no lesson {edit.lesson!r} in this playbook"
    if edit.action == "remove":
        return None
    if edit.action == "add" and len(playbook.lessons) >= MOST_LESSONS:
        return f"the playbook has {MOST_LESSONS} lessons already; remove one first"
    if (count := len(words_of(edit.text))) > MOST_WORDS:
        return f"{count} words; a lesson has at most {MOST_WORDS}"
    if HEADING.rstrip(":").lower() in edit.text.lower():
        return "it imitates the heading of the lessons"
    if (lowered := lowers_the_bar(edit.text, spec)) is not None:
        return lowered
    if (leaked := leaks.in_text(edit.text)) is not None:
        return f"it repeats what stands in a scenario: {leaked!r}"
    others = [lesson.text for lesson in playbook.lessons if lesson.id != edit.lesson]
    return _duplicate(edit.text, [*others, *_sentences(spec)]) or _unchanged(edit, playbook)


def _duplicate(text: str, others: Sequence[str]) -> str | None:
    words = set(content_words(text))
    for other in others:
        seen = set(content_words(other))
        if words and seen and len(words & seen) >= DUPLICATE * len(words | seen):
            return f"it says what is said already: {other[:80]!r}"
    return None


def _unchanged(edit: Edit, playbook: Playbook) -> str | None:
    old = playbook.lesson(edit.lesson) if edit.lesson else None
    return "it changes nothing" if old is not None and old.text == edit.text else None


def _sentences(text: str) -> list[str]:
    return [sentence for sentence in re.split(r"(?<=[.!?])\s+|\n+", text) if sentence.strip()]


def _runs(text: str) -> list[tuple[str, ...]]:
    words = words_of(text)
    return [tuple(words[i : i + LEAKED_RUN]) for i in range(len(words) - LEAKED_RUN + 1)]
