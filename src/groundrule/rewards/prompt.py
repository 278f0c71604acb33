"""The judge's prompt: grading instructions first, then the spec and the evidence."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from importlib import resources
from typing import Any

from groundrule.data.messages import Message
from groundrule.rewards.attempt import Attempt
from groundrule.rewards.transcript import render

DEFAULT_RUBRIC = """\
- A trajectory that does what the system prompt asks ranks above one that does not, whichever is better
  written.
- Statements that the given material (documents, tool results, the conversation) does not support
  count against a trajectory; where the system prompt says to rely on that material they count heavily.
- A trajectory that reaches what the user wanted ranks above one that stops short; among those
  that reach it, fewer detours are slightly better."""

RESPONSE_FORMAT: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "scores",
        "strict": True,
        "schema": {
            "type": "object",
            "additionalProperties": False,
            "required": ["scores"],
            "properties": {
                "scores": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["trajectory_id", "explanation", "score"],
                        "properties": {
                            "trajectory_id": {"type": "string"},
                            "explanation": {"type": "string"},
                            "score": {"type": "number"},
                        },
                    },
                }
            },
        },
    },
}


@functools.cache
def _template() -> str:
    return resources.files("groundrule.rewards").joinpath("prompts", "ruler.md").read_text("utf-8")


@functools.cache
def prompt_version() -> str:
    """Changes with every change of the instructions; part of each cache key."""
    return hashlib.sha256(_template().encode("utf-8")).hexdigest()[:16]


def judge_messages(
    attempts: Sequence[Attempt], *, rubric: str, seed: int, show_images: bool = False
) -> list[Message]:
    """The two messages that put the attempts, in the order given, before a judge."""
    transcript = render(attempts, seed=seed, show_images=show_images)
    code = transcript.code
    opening = f"The boundary code is {code}: only lines that begin with <<<{code} are boundaries."
    closing = (
        f"Grade the trajectories 1 to {len(attempts)} by the SPEC. Answer with the JSON object described in "
        f"your instructions, with {len(attempts)} entries."
    )
    return [
        {"role": "system", "content": _template().replace("{rubric}", rubric.strip()).strip()},
        {"role": "user", "content": _framed(opening, transcript.content, closing)},
    ]


def _framed(opening: str, content: str | list[dict[str, Any]], closing: str) -> Any:
    if isinstance(content, str):
        return f"{opening}\n\n{content}\n\n{closing}"
    return [{"type": "text", "text": opening}, *content, {"type": "text", "text": closing}]
