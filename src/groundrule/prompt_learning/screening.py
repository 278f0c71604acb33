"""The lint of a whole list: the lessons that may be in a playbook, and why others may not.

Every method that learns a prompt is held to the same rules, whoever writes its lessons.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from groundrule.prompt_learning.edits import Edit
from groundrule.prompt_learning.lint import Leaks, refusal_of
from groundrule.prompt_learning.playbook import Lesson, LessonIds, Playbook
from groundrule.prompt_learning.reflection import Reflector


@dataclass(frozen=True)
class Screened:
    """What is left of a list."""

    playbook: Playbook
    refused: tuple[tuple[str, str], ...] = ()
    """Texts that are left out, each with the reason."""


@dataclass
class Screen:
    """Reads lists of lessons below one spec."""

    spec: str
    leaks: Leaks
    ids: LessonIds
    reflector: Reflector | None = None
    """Says whether a lesson contradicts the spec; None: that is not asked."""
    _said: dict[tuple[str, str], str | None] = field(default_factory=dict, init=False)
    """The reason against a text beside other lessons, by the text and the hash of those; each is asked for once."""
    _objections: dict[str, str | None] = field(default_factory=dict, init=False)

    async def screened(self, texts: Sequence[str], known: Playbook) -> Screened:
        """A playbook of the texts. Lessons of `known` are not read again; they keep their ids and come first."""
        old = tuple(lesson for lesson in known.lessons if lesson.text in texts)
        playbook, refused = Playbook(old), []
        kept = {lesson.text for lesson in old}
        for text in dict.fromkeys(text for text in texts if text not in kept):
            key = (text, playbook.content_hash)
            if key not in self._said:
                self._said[key] = await self._refusal(text, playbook)
            reason = self._said[key]
            if reason is None:
                playbook = playbook.with_lesson(Lesson(self.ids.next(), text))
            else:
                refused.append((text, reason))
        return Screened(playbook, tuple(refused))

    async def _refusal(self, text: str, playbook: Playbook) -> str | None:
        reason = refusal_of(Edit("add", text), playbook, self.spec, self.leaks)
        if reason is not None or self.reflector is None:
            return reason
        if text not in self._objections:
            self._objections[text] = await self.reflector.objection(self.spec, text)
        return self._objections[text]
