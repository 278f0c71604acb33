"""From recurring complaints to proposed edits: a chat model reads the review and says what to write down."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from groundrule.data.messages import Message
from groundrule.data.protocols import ChatReply
from groundrule.errors import JudgeReplyError
from groundrule.llm.cache import ReplyCache
from groundrule.prompt_learning.edits import Edit, edits_format, read_edits
from groundrule.prompt_learning.evidence import Complaint, Contrast, Evidence
from groundrule.prompt_learning.playbook import Playbook
from groundrule.rewards.ask import ask
from groundrule.rewards.judges import Judge
from groundrule.rewards.neutral import neutral
from groundrule.rewards.parse import reply_object
from groundrule.rewards.prompt import object_schema, reply_format
from groundrule.rewards.prompt_files import prompt_text, prompt_version

PACKAGE = "groundrule.prompt_learning"
PURPOSE = "prompt/reflection"
MOST_COMPLAINTS = 3
MOST_EXAMPLES = 3
LONGEST = 1_200
"""Characters of a task, an answer or a remark; the middle of longer ones is left out, and that is said."""
_FILE = "reflect.md"
_CONTRADICTION = "contradiction.md"
_VERDICT = reply_format(
    "contradiction",
    object_schema(
        quote={"type": "string", "maxLength": 400},
        verdict={"type": "string", "enum": ["contradicts", "consistent"]},
    ),
)


@dataclass(frozen=True)
class Reflector:
    """Chat models that write lessons, asked in turn when one gives nothing usable."""

    judges: Sequence[Judge]
    cache: ReplyCache | bool | None = None

    async def edits(
        self, spec: str, playbook: Playbook, evidence: Evidence, tried: Sequence[str] = ()
    ) -> list[Edit]:
        """At most three edits; none where nothing recurs. Raises `JudgeError` or `LlmError` without a usable reply."""
        shown = evidence.complaints[:MOST_COMPLAINTS]
        if not shown:
            return []
        ids = {c.id for complaint in shown for c in _examples(evidence, complaint)}
        messages: list[Message] = [
            {"role": "system", "content": prompt_text(_FILE, PACKAGE)},
            {"role": "user", "content": as_json(material(spec, playbook, evidence, shown, tried))},
        ]
        asked = [told(judge, edits_format(playbook, ids)) for judge in self.judges]
        reading = await ask(
            asked,
            lambda _: messages,
            lambda reply: read_edits(reply, playbook, ids),
            purpose=PURPOSE,
            cache=self.cache,
            key_parts={"kind": "reflection", "prompt": prompt_version(_FILE, PACKAGE)},
        )
        return reading.value

    async def objection(self, spec: str, lesson: str) -> str | None:
        """Why a lesson may not be kept beside the spec; None for one that may."""
        broken = await self.contradiction(spec, lesson)
        return f"it contradicts the spec: {broken!r}" if broken else None

    async def contradiction(self, spec: str, lesson: str) -> str | None:
        """The demand of the spec that a lesson breaks, word for word; None where it breaks none.

        A verdict whose quote is not in the spec does not count.
        """
        content = as_json({"SPEC": neutral(spec), "LESSON": neutral(lesson)})
        messages: list[Message] = [
            {"role": "system", "content": prompt_text(_CONTRADICTION, PACKAGE)},
            {"role": "user", "content": content},
        ]
        reading = await ask(
            [told(judge, _VERDICT) for judge in self.judges],
            lambda _: messages,
            lambda reply: _contradicted(reply, spec),
            purpose=PURPOSE,
            cache=self.cache,
            key_parts={"kind": "contradiction", "prompt": prompt_version(_CONTRADICTION, PACKAGE)},
        )
        return reading.value


def told(judge: Judge, response_format: dict[str, Any]) -> Judge:
    """Told the form of its reply, unless its own parameters say otherwise."""
    return replace(judge, params={"response_format": response_format, **judge.params})


def _contradicted(reply: ChatReply, spec: str) -> str | None:
    said = reply_object(reply, "verdict")
    if said["verdict"] not in ("contradicts", "consistent"):
        raise JudgeReplyError(
            "wrong_type", f"verdict is {str(said['verdict'])[:60]!r}; it is contradicts or consistent"
        )
    quote = " ".join(str(said.get("quote") or "").split())
    counts = said["verdict"] == "contradicts" and quote and quote.lower() in " ".join(spec.split()).lower()
    return quote if counts else None


def _examples(evidence: Evidence, complaint: Complaint) -> list[Contrast]:
    """Those with the widest gap, in their order."""
    found = evidence.of(complaint)
    widest = sorted(found, key=lambda c: c.worst_score - c.best_score)[:MOST_EXAMPLES]
    return [contrast for contrast in found if contrast in widest]


def material(
    spec: str, playbook: Playbook, evidence: Evidence, shown: Sequence[Complaint], tried: Sequence[str] = ()
) -> dict[str, Any]:
    """What a model that writes lessons is shown."""
    examples = {c.id: c for complaint in shown for c in _examples(evidence, complaint)}
    return {
        "SPEC": neutral(spec),
        "LESSONS": [
            {"id": lesson.id, "text": lesson.text, "helped": lesson.helpful, "harmed": lesson.harmful}
            for lesson in playbook.lessons
        ],
        "COMPLAINTS": [
            {
                "complaint": short(complaint.text),
                "groups": len(complaint.contrasts),
                "examples": [c.id for c in _examples(evidence, complaint)],
            }
            for complaint in shown
        ],
        "EXAMPLES": [_example(contrast) for contrast in examples.values()],
        "TRIED_BEFORE": [neutral(text) for text in tried],
    }


def as_json(record: Mapping[str, Any]) -> str:
    """So that no text from outside can end the field in which it stands."""
    return json.dumps(record, ensure_ascii=False, indent=1)


def _example(contrast: Contrast) -> dict[str, Any]:
    return {
        "id": contrast.id,
        "task": short(contrast.task),
        "better_answer": short(contrast.best),
        "remark_on_it": short(contrast.best_explanation),
        "worse_answer": short(contrast.worst),
        "remark_on_the_worse": short(contrast.worst_explanation),
        "quoted_from_the_worse": [short(quote) for quote in contrast.quotes],
    }


def short(text: str) -> str:
    """Harmless, and not longer than `LONGEST`."""
    text = neutral(text)
    if len(text) <= LONGEST:
        return text
    half = LONGEST // 2
    return f"{text[:half]} [... {len(text) - 2 * half} characters left out ...] {text[-half:]}"
