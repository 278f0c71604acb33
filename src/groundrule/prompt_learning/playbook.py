"""The two texts of a prompt: the spec, which is never edited, and a playbook of short lessons below it.

The spec is what answers are judged by. The agent is shown both; a person may read, edit and ship the file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from groundrule._util.digest import digest
from groundrule.errors import DataError

HEADING = "Lessons from earlier work:"
_NUMBERED = re.compile(r"^\s*(?:\d+[.)]|[-*•])\s+(?P<text>\S.*)$")


@dataclass(frozen=True)
class Lesson:
    """One short instruction that experience gave."""

    id: str
    text: str
    helpful: int = 0
    """Test scenarios on which the prompt did better with it than without."""
    harmful: int = 0
    """Test scenarios on which it did worse."""


@dataclass(frozen=True)
class Playbook:
    """Lessons in their order."""

    lessons: tuple[Lesson, ...] = ()

    def below(self, spec: str) -> str:
        """The prompt that the agent is shown."""
        if not self.lessons:
            return spec
        numbered = [f"{number}. {lesson.text}" for number, lesson in enumerate(self.lessons, start=1)]
        return "\n".join([*([spec.rstrip(), ""] if spec.strip() else []), HEADING, *numbered])

    def lesson(self, name: str) -> Lesson | None:
        """By its id."""
        return next((lesson for lesson in self.lessons if lesson.id == name), None)

    def with_lesson(self, lesson: Lesson) -> Playbook:
        """With one more at the end, or in the place of the one with its id."""
        if self.lesson(lesson.id) is None:
            return Playbook((*self.lessons, lesson))
        return Playbook(tuple(lesson if old.id == lesson.id else old for old in self.lessons))

    def without(self, name: str) -> Playbook:
        """Without one."""
        return Playbook(tuple(lesson for lesson in self.lessons if lesson.id != name))

    def counted(self, name: str, *, helpful: int, harmful: int) -> Playbook:
        """What a test showed of a lesson, added to what is known."""
        lesson = self.lesson(name)
        if lesson is None:
            return self
        return self.with_lesson(
            replace(lesson, helpful=lesson.helpful + helpful, harmful=lesson.harmful + harmful)
        )

    @property
    def content_hash(self) -> str:
        """Of what the agent reads; counters and ids do not change it."""
        return digest("\n".join(lesson.text for lesson in self.lessons))

    def to_dict(self) -> list[dict[str, Any]]:
        """For files."""
        return [vars(lesson).copy() for lesson in self.lessons]

    @classmethod
    def from_dict(cls, lessons: Sequence[Mapping[str, Any]]) -> Playbook:
        """From a file."""
        return cls(tuple(Lesson(**lesson) for lesson in lessons))


@dataclass
class LessonIds:
    """Gives out ids that no lesson of a run had before."""

    given: int = 0
    prefix: str = field(default="L", repr=False)

    def next(self) -> str:
        """L1, L2, ..."""
        self.given += 1
        return f"{self.prefix}{self.given}"


def read_playbook(
    text: str, spec: str, ids: LessonIds, *, known: Playbook = Playbook(), source: str = "playbook"
) -> Playbook:
    """The lessons of a prompt file, which a person may have edited.

    A lesson whose words are in `known` keeps its id and counters. Raises `DataError` where the spec was edited: it is
    what answers are judged by, and belongs into the scenarios or `policy.system`.
    """
    above, heading, listed = text.rpartition(HEADING)
    if (
        not heading or text.strip() == spec.strip()
    ):  # A learned prompt may be the spec, with a heading of its own.
        above, listed = text, ""
    if above.strip() != spec.strip():
        raise DataError(
            f"{source}: the text above {HEADING!r} is not the system prompt that answers are judged by; "
            "put it back, and change the system prompt where it comes from"
        )
    lessons = [_read_line(line, number, source) for number, line in enumerate(listed.splitlines())]
    texts = [lesson for lesson in lessons if lesson]
    twice = next((t for t in texts if texts.count(t) > 1), None)
    if twice is not None:
        raise DataError(f"{source}: the lesson {twice!r} stands there twice; leave one")
    by_text = {lesson.text: lesson for lesson in known.lessons}
    return Playbook(tuple(by_text.get(text) or Lesson(ids.next(), text) for text in texts))


def _read_line(line: str, number: int, source: str) -> str:
    if not line.strip():
        return ""
    found = _NUMBERED.match(line)
    if found is None:
        raise DataError(
            f"{source}, line {number} below {HEADING!r}: {line.strip()[:60]!r} is no lesson; write '1. ...', one a line"
        )
    return found["text"].strip()
