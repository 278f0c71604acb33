"""A whole playbook written at once by a chat model, from the same evidence as single edits.

This is how prompts are mostly optimised, and what `PromptLearner` is compared with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from groundrule.data.messages import Message
from groundrule.data.protocols import ChatReply
from groundrule.errors import JudgeReplyError
from groundrule.llm.cache import ReplyCache
from groundrule.prompt_learning.evidence import Evidence
from groundrule.prompt_learning.lint import MOST_LESSONS, MOST_WORDS
from groundrule.prompt_learning.playbook import Playbook
from groundrule.prompt_learning.reflection import MOST_COMPLAINTS, PACKAGE, PURPOSE, as_json, material, told
from groundrule.rewards.ask import ask
from groundrule.rewards.judges import Judge
from groundrule.rewards.parse import reply_object
from groundrule.rewards.prompt import object_schema, reply_format
from groundrule.rewards.prompt_files import prompt_text, prompt_version

_FILE = "rewrite.md"
_LIMITS = {"lessons_at_most": MOST_LESSONS, "words_in_a_lesson_at_most": MOST_WORDS}
_FORMAT = reply_format(
    "lessons",
    object_schema(
        lessons={
            "type": "array",
            "items": {"type": "string", "maxLength": 400},
            "maxItems": MOST_LESSONS,
        }
    ),
)


@dataclass(frozen=True)
class PlaybookWriter:
    """Chat models that write a whole list of lessons, asked in turn when one gives nothing usable."""

    judges: Sequence[Judge]
    cache: ReplyCache | bool | None = None

    async def lessons(self, spec: str, playbook: Playbook, evidence: Evidence, *, seed: int) -> list[str]:
        """The texts of a new list; those of the old one where nothing recurs.

        `seed` goes to the model, so that one question has several answers. Raises `JudgeError` or `LlmError` without a
        usable reply.
        """
        shown = evidence.complaints[:MOST_COMPLAINTS]
        if not shown:
            return [lesson.text for lesson in playbook.lessons]
        record = {**material(spec, playbook, evidence, shown), "PLAYBOOK": _LIMITS}
        messages: list[Message] = [
            {"role": "system", "content": prompt_text(_FILE, PACKAGE)},
            {"role": "user", "content": as_json(record)},
        ]
        reading = await ask(
            [told(seeded(judge, seed), _FORMAT) for judge in self.judges],
            lambda _: messages,
            read_lessons,
            purpose=PURPOSE,
            cache=self.cache,
            key_parts={"kind": "rewriting", "prompt": prompt_version(_FILE, PACKAGE)},
        )
        return reading.value


def seeded(judge: Judge, seed: int) -> Judge:
    """Told what to draw its words with; endpoints that take no seed are asked without it."""
    return replace(judge, params={**judge.params, "seed": seed})


def read_lessons(reply: ChatReply) -> list[str]:
    """The texts in a reply; an empty list is an answer too. Raises `JudgeReplyError` for what cannot be used."""
    listed = reply_object(reply, "lessons")["lessons"]
    if not isinstance(listed, list) or not all(isinstance(text, str) for text in listed):
        raise JudgeReplyError("wrong_type", f"lessons is {str(listed)[:60]!r}; it must be a list of texts")
    if len(listed) > MOST_LESSONS:
        raise JudgeReplyError(
            "wrong_type", f"{len(listed)} lessons; at most {MOST_LESSONS} fit into a playbook"
        )
    texts = [" ".join(text.split()) for text in listed]
    return [text for text in texts if text]
