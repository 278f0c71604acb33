"""What keeps a proposed lesson from being tested at all: cheap rules before dear rollouts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
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
_DETAIL = re.compile(
    r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|https?://\S*[\w/]|\d+(?:[.,:]\d+)+|\d{2,}|(?P<word>[^\W\d_]{3,})"
)
_OF_FORM = re.compile(
    r"\s+(?:words?|sentences?|lines?|paragraphs?|characters?|letters?|bullets?|bullet points?|tokens?)\b"
)
"""What a number may count without saying anything of a scenario: the form of an answer."""
_OPENING = " \t\"'“”‘’«(*-"


@dataclass(frozen=True)
class Leaks:
    """What the scenarios say, to be found again in a lesson that only repeats it."""

    runs: frozenset[tuple[str, ...]]
    details: frozenset[str]
    """Numbers, addresses and names of questions, passages and references that the spec does not have."""

    @classmethod
    def of(cls, scenarios: Iterable[Scenario], spec: str) -> Leaks:
        """From all scenarios, trained on or held out."""
        texts: list[str] = []
        for scenario in scenarios:
            texts += [scenario.question, scenario.context, scenario.reference or ""]
            texts += [form for forms in scenario.facts for form in forms]
        runs = {run for text in texts for run in _runs(text)} - set(_runs(spec))
        details = {said for text in texts for said in _details(text)} - {*_details(spec), *_words(spec)}
        # A word that is written small as well, such as one of a heading, is no name.
        small = {word for text in [*texts, spec] for word in _words(text) if word.islower()}
        return cls(frozenset(runs), frozenset(said for said in details if said.lower() not in small))

    def in_text(self, text: str) -> str | None:
        """What of a scenario stands in the text; None for nothing."""
        for run in _runs(text):
            if run in self.runs:
                return " ".join(run)
        return next((said for said in _details(text, counts=False) if said in self.details), None)


def refusal_of(edit: Edit, playbook: Playbook, spec: str, leaks: Leaks) -> str | None:
    """Why an edit is not worth a test; None for one that is."""
    if not edit.fits(playbook):
        return f"there is no lesson {edit.lesson!r} in this playbook"
    if edit.action == "remove":
        return None
    if edit.action == "add" and len(playbook.lessons) >= MOST_LESSONS:
        return f"the playbook has {MOST_LESSONS} lessons already; remove one first"
    if not (count := len(words_of(edit.text))):
        return "it has no words"
    if count > MOST_WORDS:
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


def _words(text: str) -> Iterator[str]:
    return (found["word"] for found in _DETAIL.finditer(text) if found["word"])


def _details(text: str, *, counts: bool = True) -> Iterator[str]:
    """Numbers, addresses and names; without `counts` no numbers that only count words or sentences."""
    for found in _DETAIL.finditer(text):
        if found["word"] is None:
            if counts or not _OF_FORM.match(text, found.end()):
                yield found[0]
        elif found[0][0].isupper() and found[0][1].islower() and not _begins_sentence(text, found.start()):
            yield found[0]


def _begins_sentence(text: str, at: int) -> bool:
    before = text[max(0, at - 8) : at].rstrip(_OPENING)
    return not before or before[-1] in ".!?:\n"


def _runs(text: str) -> list[tuple[str, ...]]:
    words = words_of(text)
    return [tuple(words[i : i + LEAKED_RUN]) for i in range(len(words) - LEAKED_RUN + 1)]
