"""What gepa reflects on, and with: the worst answers with the judge's words, and models that write lists of lessons.

What they write is read by the lint before gepa sees it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from groundrule._util.bridge import Bridge
from groundrule._util.seed import derive
from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import Message, last_answer
from groundrule.data.protocols import ChatReply
from groundrule.data.scenario import Scenario
from groundrule.prompt_learning.evidence import explanation_of
from groundrule.prompt_learning.playbook import Lesson, LessonIds, Playbook
from groundrule.prompt_learning.reflection import PACKAGE, PURPOSE, Reflector, short
from groundrule.prompt_learning.rewriting import seeded
from groundrule.prompt_learning.screening import Screen
from groundrule.prompt_learning.trial import seen
from groundrule.rewards.ask import ask
from groundrule.rewards.neutral import neutral
from groundrule.rewards.parse import reply_text
from groundrule.rewards.prompt_files import prompt_text, prompt_version

_FILE = "gepa.md"
_FENCE = "```"
_MARK = re.compile(r"^(?:\d+[.)]|[-*•])\s+")


class Failed(BaseException):
    """Carries an error of ours past gepa, which would note any `Exception` here and go on without a proposal."""

    def __init__(self, error: Exception) -> None:
        """`error` is what to raise in its place."""
        super().__init__(str(error))
        self.error = error


class ListWriter:
    """Called by gepa in its thread, with its prompt."""

    def __init__(
        self, reflector: Reflector, screen: Screen, start: Playbook, bridge: Bridge, seed: int = 0
    ) -> None:
        """Lessons of `start` are not read again."""
        self._reflector, self._screen, self._start, self._bridge = reflector, screen, start, bridge
        self._seed, self._asked = seed, 0
        self.refused: dict[str, str] = {}
        """Lessons that were taken out of the lists, each with the reason."""

    def __call__(self, prompt: str | list[dict[str, Any]]) -> str:
        """What is left of the list that a model writes, within marks. Raises `Failed`."""
        self._asked += 1
        messages = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
        try:
            return self._bridge(self._written(messages))
        except Exception as error:
            raise Failed(error) from error

    async def _written(self, messages: list[Message]) -> str:
        seed = derive("gepa", self._seed, self._asked) >> 32
        reading = await ask(
            [seeded(judge, seed) for judge in self._reflector.judges],
            lambda _: messages,
            read_list,
            purpose=PURPOSE,
            cache=self._reflector.cache,
            key_parts={"kind": "gepa", "prompt": prompt_version(_FILE, PACKAGE)},
        )
        screened = await self._screen.screened(reading.value, self._start)
        self.refused |= dict(screened.refused)
        return f"{_FENCE}\n{text_of(screened.playbook)}\n{_FENCE}"


@dataclass(frozen=True)
class Trace:
    """The worst answer to a scenario under a candidate, and what the judge says of it."""

    task: str
    answer: str
    remark: str
    score: float
    """The gain of all answers under the candidate on those under the start prompt."""


def trace_of(scenario: Scenario, group: TrajectoryGroup | None, start: str, prompt: str) -> Trace:
    """Of a judged group in which the start prompt is too; without a score the gain is 0."""
    members = [] if group is None else [t for t in group.scored if t.is_under(prompt)]
    if group is None or not members:
        return Trace(scenario.question, "", "", 0.0)
    worst = min(members, key=lambda t: t.reward)
    gain = seen(group, start, prompt)
    return Trace(
        scenario.question,
        last_answer(worst.messages()) or "",
        explanation_of(worst),
        0.0 if gain is None else gain.difference,
    )


def record_of(trace: Trace) -> dict[str, str]:
    """As gepa shows it to the model."""
    return {
        "Inputs": one_line(trace.task),
        "Generated Outputs": one_line(trace.answer),
        "Feedback": one_line(trace.remark),
        "Score, compared with the first lessons": f"{trace.score:+.2f}",
    }


def template(spec: str) -> str:
    """gepa's prompt for a spec, with gepa's two places left open."""
    return prompt_text(_FILE, PACKAGE).replace("<spec>", json.dumps(neutral(spec), ensure_ascii=False))


def one_line(text: str) -> str:
    """A JSON string, so that no text from outside can open a section of its own; long ones are shortened."""
    return json.dumps(short(text), ensure_ascii=False)


def read_list(reply: ChatReply) -> list[str]:
    """The lines within marks, or all of them where there are none, without bullets and numbers."""
    parts = reply_text(reply).split(_FENCE)
    listed = parts[1].partition("\n")[2] if len(parts) > 2 else parts[0]
    lines = (" ".join(_MARK.sub("", line.strip()).split()) for line in listed.splitlines())
    return [line for line in lines if line]


def text_of(playbook: Playbook) -> str:
    """What gepa evolves: the lessons, one a line."""
    return "\n".join(lesson.text for lesson in playbook.lessons)


def playbook_of(text: str) -> Playbook:
    """The same as a playbook, whose ids are only the numbers of the lines."""
    return Playbook(tuple(Lesson(str(number), line) for number, line in enumerate(text.splitlines())))


def with_ids(texts: Sequence[str], known: Playbook, ids: LessonIds) -> Playbook:
    """A playbook to keep: lessons of `known` as they are there, the others with new ids."""
    by_text = {lesson.text: lesson for lesson in known.lessons}
    return Playbook(tuple(by_text.get(text) or Lesson(ids.next(), text) for text in texts))
