"""Edits of a playbook: add, change or remove one lesson. Never a whole prompt written anew.

Prompts that are rewritten as a whole lose what they knew (Zhang et al. 2025, ACE); a small edit can be tested, and
taken back.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import asdict, dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from groundrule.data.protocols import ChatReply
from groundrule.errors import JudgeReplyError
from groundrule.prompt_learning.playbook import Lesson, LessonIds, Playbook
from groundrule.rewards.checklist.criteria import fault_of
from groundrule.rewards.parse import reply_object
from groundrule.rewards.prompt import object_schema, reply_format

Action = Literal["add", "change", "remove"]
MOST_EDITS = 3


@dataclass(frozen=True)
class Edit:
    """One change, with why and from what."""

    action: Action
    text: str = ""
    """The lesson's words; empty for a removal."""
    lesson: str | None = None
    """Which lesson is changed or removed; None for a new one."""
    rationale: str = ""
    evidence: tuple[str, ...] = ()
    """Ids of the contrasts that it comes from."""

    def applied_to(self, playbook: Playbook, ids: LessonIds) -> tuple[Playbook, str]:
        """The edited playbook, and the id of the lesson that was touched.

        A changed lesson begins with new counters: what is known of the old words says nothing of the new ones.
        """
        if self.action == "remove":
            assert self.lesson is not None
            return playbook.without(self.lesson), self.lesson
        name = self.lesson if self.action == "change" and self.lesson else ids.next()
        return playbook.with_lesson(Lesson(name, self.text)), name

    def fits(self, playbook: Playbook) -> bool:
        """Whether the lesson that it touches is there."""
        return self.lesson is None or playbook.lesson(self.lesson) is not None

    def to_dict(self) -> dict[str, Any]:
        """For files."""
        return {**asdict(self), "evidence": list(self.evidence)}

    @classmethod
    def from_dict(cls, record: dict[str, Any]) -> Edit:
        """From a file."""
        return cls(**{**record, "evidence": tuple(record["evidence"])})


class _EditReply(BaseModel):
    """One edit as the reflection model writes it."""

    model_config = ConfigDict(extra="ignore")

    action: Action
    lesson: str | None = None
    text: str = ""
    rationale: str = ""
    evidence: list[str] = Field(default_factory=list)


def edits_format(playbook: Playbook, evidence: Collection[str]) -> dict[str, Any]:
    """The `response_format` of a reply, as narrow as what was shown allows."""
    lessons = [lesson.id for lesson in playbook.lessons]
    actions = ["add", "change", "remove"] if lessons else ["add"]
    properties: dict[str, Any] = {
        "action": {"type": "string", "enum": actions},
        "lesson": {"anyOf": [{"type": "string", "enum": lessons}, {"type": "null"}]}
        if lessons
        else {"type": "null"},
        "text": {"type": "string", "maxLength": 300},
        "rationale": {"type": "string", "maxLength": 200},
        "evidence": {"type": "array", "items": {"type": "string", "enum": sorted(evidence)}, "maxItems": 4},
    }
    edits = {"type": "array", "items": object_schema(**properties), "maxItems": MOST_EDITS}
    return reply_format("edits", object_schema(edits=edits))


def read_edits(reply: ChatReply, playbook: Playbook, evidence: Collection[str]) -> list[Edit]:
    """The edits in a reply; none is an answer too. Raises `JudgeReplyError` for what cannot be used."""
    listed = reply_object(reply, "edits")["edits"]
    if not isinstance(listed, list):
        raise JudgeReplyError("wrong_type", f"edits is {str(listed)[:60]!r}; it must be a list")
    if len(listed) > MOST_EDITS:
        raise JudgeReplyError("wrong_type", f"{len(listed)} edits; at most {MOST_EDITS} are asked for")
    return [_edit(item, playbook, evidence) for item in listed]


def _edit(item: Any, playbook: Playbook, evidence: Collection[str]) -> Edit:
    try:
        said = _EditReply.model_validate(item)
    except ValidationError as error:
        raise JudgeReplyError("wrong_type", fault_of(error)) from error
    text = " ".join(said.text.split())
    unknown = [name for name in said.evidence if name not in evidence]
    if unknown:
        raise JudgeReplyError("unknown_ids", f"evidence {unknown[0]!r} was not shown")
    if said.action != "remove" and not text:
        raise JudgeReplyError("empty", f"an edit that is to {said.action} a lesson has no text")
    if said.action != "add" and (said.lesson is None or playbook.lesson(said.lesson) is None):
        raise JudgeReplyError("unknown_ids", f"there is no lesson {said.lesson!r} to {said.action}")
    return Edit(
        action=said.action,
        text="" if said.action == "remove" else text,
        lesson=None if said.action == "add" else said.lesson,
        rationale=" ".join(said.rationale.split()),
        evidence=tuple(said.evidence),
    )
