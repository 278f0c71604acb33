"""Chat messages in OpenAI's shape, and the sampled `Choice` objects that stand among them.

A conversation is a list in which plain dict messages (context) and OpenAI `Choice` objects
(what the policy sampled) mix freely. This file reads both without importing `openai`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Message = dict[str, Any]
Tools = list[dict[str, Any]]

_TEXT_TYPES = ("text", "input_text", "output_text")


def is_choice(item: object) -> bool:
    """True for an OpenAI `Choice`: something with a message and a finish reason."""
    # Asked of every message of every group; a dict is told at once, a Mapping in general is not.
    return (
        not isinstance(item, (dict, Mapping)) and hasattr(item, "message") and hasattr(item, "finish_reason")
    )


def message_of(item: Any) -> Message:
    """The plain message behind a dict or a Choice.

    Keys whose value is null are left out (tables fill absent keys with nulls), except an assistant's
    content, which becomes "". Reasoning and refusals are kept under their own keys.
    """
    if not is_choice(item):
        given = item if isinstance(item, dict) else dict(item)
        message = {key: value for key, value in given.items() if value is not None}
        if message.get("role") == "assistant":
            message.setdefault("content", "")
        return message
    message = dict(item.message.model_dump(mode="json", exclude_none=True))
    message["role"] = "assistant"
    message.setdefault("content", "")
    return message


def text_of(content: Any) -> str:
    """The text of a message's content: a string, null, or a list of parts (other parts are skipped)."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Iterable):
        return "".join(_part_text(part) for part in content)
    return str(content)


def _is_text(part: Any) -> bool:
    return isinstance(part, str) or (isinstance(part, Mapping) and part.get("type") in _TEXT_TYPES)


def _part_text(part: Any) -> str:
    if isinstance(part, str):
        return part
    return str(part.get("text") or "") if _is_text(part) else ""


def images_of(content: Any) -> list[dict[str, Any]]:
    """The image parts of a message's content, in order."""
    if isinstance(content, str) or content is None:
        return []
    return [
        dict(part)
        for part in content
        if isinstance(part, Mapping) and part.get("type") in ("image_url", "input_image")
    ]


def canonical(item: Any) -> Message:
    """One form for messages and Choices that mean the same, for comparing and hashing.

    Nulls are dropped, a list of text parts becomes one string, tool-call arguments that are JSON
    are written in one way.
    """
    result = message_of(item)
    content = result.get("content")
    if isinstance(content, list) and all(_is_text(part) for part in content):
        result["content"] = text_of(content)
    if calls := result.get("tool_calls"):
        result["tool_calls"] = [_canonical_call(call) for call in calls]
    else:
        result.pop("tool_calls", None)
    return result


def _canonical_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict(call.get("function") or {})
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            function["arguments"] = json.loads(arguments)
        except ValueError:
            function["arguments"] = arguments
    return {**{k: v for k, v in call.items() if v is not None}, "function": function}


def last_answer(messages: Sequence[Mapping[str, Any]]) -> str | None:
    """The text of the last assistant message; None where there is none."""
    last = next((m for m in reversed(messages) if m.get("role") == "assistant"), None)
    return None if last is None else text_of(last.get("content"))


def conversation_key(messages: Iterable[Mapping[str, Any]], tools: Any) -> str:
    """Equal exactly for conversations that mean the same, with the same tools."""
    return key_of([*messages, *([{"tools": tools}] if tools else [])])


def key_of(messages: Iterable[Mapping[str, Any]]) -> str:
    """A canonical text of a conversation; equal exactly when the conversations mean the same."""
    return json.dumps([canonical(m) for m in messages], sort_keys=True, ensure_ascii=False)


def system_prompt_of(messages: Iterable[Mapping[str, Any]]) -> str:
    """All system and developer messages, joined: the spec. "" where there is none."""
    prompts = [text_of(m.get("content")) for m in messages if m.get("role") in ("system", "developer")]
    return "\n\n".join(prompts)
