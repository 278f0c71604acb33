"""What stood before an answer, taken apart: instructions, question, passage, and the words around them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import Message, system_prompt_of, text_of
from groundrule.data.trajectory import Trajectory

_NAMES = r"(?:retrieved )?(?:context|passage|documents?)"
_LABEL = re.compile(rf"^\s*\[?{_NAMES}\]?:|\[{_NAMES}\]:", re.IGNORECASE | re.MULTILINE)
"""In brackets anywhere, or at the start of a line: "I need these documents: ..." is not a label."""
_QUESTION_LABEL = re.compile(r"\n\s*question:", re.IGNORECASE)


@dataclass(frozen=True)
class Situation:
    """What stood before an answer, taken apart."""

    messages: list[Message]
    system: str
    question: str | None
    passage: str | None
    frame: str
    """The user's words that are neither question nor passage."""
    is_cut: bool = False
    """The answer ended at its token limit, not by itself."""


def case_of(trajectory: Trajectory, group: TrajectoryGroup) -> tuple[Situation, str] | str:
    """The situation and the answer, or why there is nothing to score."""
    turns = trajectory.messages()
    places = [i for i, turn in enumerate(turns) if turn.get("role") == "assistant"]
    if not places:
        return "no assistant message to judge"
    answer = text_of(turns[places[-1]].get("content"))
    if not answer.strip():
        return "the answer is empty"
    is_cut = getattr(trajectory.messages_and_choices[places[-1]], "finish_reason", "stop") == "length"
    return replace(_situation(turns[: places[-1]], group), is_cut=is_cut), answer


def _situation(before: list[Message], group: TrajectoryGroup) -> Situation:
    users = [text_of(m.get("content")) for m in before if m.get("role") == "user"]
    asked = users[-1] if users else ""
    question, passage = group.metadata.get("question"), group.metadata.get("context")
    if not (question and passage and question in asked and passage in asked):
        question, passage = split_user_message(asked)
    frame = asked.replace(passage or "", " ").replace(question or "", " ")
    return Situation(before, system_prompt_of(before), question, passage, frame)


def split_user_message(text: str) -> tuple[str | None, str | None]:
    """Question and passage of a message in which a label such as `[Retrieved context]:` parts them."""
    label = _LABEL.search(text)
    if label is None:
        return None, None
    before, after = text[: label.start()].strip(), text[label.end() :].strip()
    if before:
        return before, after
    second = _QUESTION_LABEL.search(after)
    if second is None:
        return None, None
    return after[second.end() :].strip(), after[: second.start()].strip()
