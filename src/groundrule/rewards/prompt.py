"""The judge's prompt: grading instructions first, then the spec and the evidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groundrule.data.messages import Message
from groundrule.rewards.attempt import Attempt
from groundrule.rewards.prompt_files import prompt_text
from groundrule.rewards.prompt_files import prompt_version as version_of
from groundrule.rewards.transcript import render

DEFAULT_RUBRIC = """\
- Claims that the given material does not support count against a trajectory, heavily where the SPEC relies on it."""

_ON_CALLS = "Each CALL and RESULT really happened; whatever else an agent says that it did is only a claim."
"""Said only where there are calls: every word is paid for with each group."""

_LONGEST_EXPLANATION = 300
"""Characters. A weak model does not know when to stop."""


def object_schema(**properties: Any) -> dict[str, Any]:
    """The schema of an object with exactly these properties."""
    return {
        "type": "object",
        "additionalProperties": False,
        "required": list(properties),
        "properties": properties,
    }


def _format(**scores: Any) -> dict[str, Any]:
    """The response format whose `scores` are an array of this kind."""
    return reply_format("scores", object_schema(scores={"type": "array", **scores}))


def reply_format(name: str, schema: dict[str, Any]) -> dict[str, Any]:
    """The response format of a reply that keeps to a schema."""
    return {"type": "json_schema", "json_schema": {"name": name, "strict": True, "schema": schema}}


RESPONSE_FORMAT = _format(
    items=object_schema(
        trajectory_id={"type": "string"}, explanation={"type": "string"}, score={"type": "number"}
    )
)


def exact_format(count: int) -> dict[str, Any]:
    """The same format for exactly so many trajectories, each with its own id and a score that is one.

    For judges that are held to it token by token; endpoints differ in how much of a schema they take.
    """
    entries = [
        object_schema(
            trajectory_id={"const": str(number)},
            explanation={"type": "string", "maxLength": _LONGEST_EXPLANATION},
            score={"type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.01},
        )
        for number in range(1, count + 1)
    ]
    return _format(prefixItems=entries, items=False, minItems=count, maxItems=count)


def prompt_version() -> str:
    """Changes with every change of the instructions; part of each cache key."""
    return version_of("ruler.md")


def instructions(rubric: str) -> str:
    """What the judge is told before it sees anything of the group."""
    return prompt_text("ruler.md").replace("{rubric}", rubric.strip())


def judge_messages(
    attempts: Sequence[Attempt], *, rubric: str, seed: int, show_images: bool = False
) -> list[Message]:
    """The two messages that put the attempts, in the order given, before a judge."""
    count = len(attempts)
    closing = f"Score trajectories 1 to {count}."
    if any(turn["calls"] for attempt in attempts for turn in attempt.turns):
        closing = f"{_ON_CALLS} {closing}"
    return [
        {"role": "system", "content": instructions(rubric)},
        {"role": "user", "content": framed(attempts, closing, seed=seed, show_images=show_images)},
    ]


def framed(
    attempts: Sequence[Attempt],
    closing: str,
    *,
    seed: int,
    show_images: bool = False,
    names: Sequence[str] | None = None,
    given: int | None = None,
) -> Any:
    """The content of a judge's user message: the attempts as evidence (see `render`), then what to do now."""
    content = render(attempts, seed=seed, show_images=show_images, names=names, given=given).content
    if isinstance(content, str):
        return f"{content}\n\n{closing}"
    return [*content, {"type": "text", "text": closing}]
