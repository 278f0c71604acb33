"""Find the tool calls in what a model wrote.

Two ways of writing them are read: JSON between `<tool_call>` tags (Hermes, Qwen), and an answer that is nothing but
a JSON object or list of them with `name` and `arguments` (or `parameters`), fenced or not, as Llama writes. A call
counts only when it is complete and names a tool that was offered; everything else stays text.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

_TAGGED = re.compile(r"<tool_call>\s*(.*?)\s*</tool_call>", re.DOTALL)
_FENCE = re.compile(r"\A\s*```(?:json)?\s*(.*?)\s*```\s*\Z", re.DOTALL)
_OPEN = "<tool_call>"
_BARE = re.compile(r"\s*(?:```(?:json)?\s*)?(?:\[\s*)?(?:\{\s*(?:\"|\Z)|\Z)")
"""The beginning of an answer that may yet be nothing but calls in JSON."""


@dataclass(frozen=True)
class ToolCall:
    """One complete call."""

    name: str
    arguments: str
    """JSON text of an object."""
    id: str = field(default_factory=lambda: f"call_{uuid.uuid4().hex[:24]}")

    def as_message_part(self, index: int | None = None) -> dict[str, Any]:
        """As OpenAI writes it; streams number their calls."""
        numbered = {} if index is None else {"index": index}
        function = {"name": self.name, "arguments": self.arguments}
        return {**numbered, "id": self.id, "type": "function", "function": function}


@dataclass(frozen=True)
class Parsed:
    """An answer taken apart."""

    content: str | None
    """What is left as text; None where there are calls and no text."""
    calls: list[ToolCall]


def parse_tool_calls(text: str, tools: Sequence[Mapping[str, Any]]) -> Parsed:
    """The text of an answer and the calls in it.

    Text with a call that was begun and not finished is left as it is: half a call is no call.
    """
    names = {str(tool.get("function", tool).get("name")) for tool in tools}
    tagged = list(_TAGGED.finditer(text))
    if tagged:
        rest = _TAGGED.sub("", text)
        calls = [_calls(match[1], names) for match in tagged]
        if all(calls) and _OPEN not in rest:
            return Parsed(
                rest.rstrip() if rest.strip() else None, [call for several in calls for call in several]
            )
        return Parsed(text, [])
    found = _calls(_FENCE.sub(r"\1", text).strip(), names)
    return Parsed(None, found) if found else Parsed(text, [])


def settled(text: str) -> str:
    """What stays text in a growing answer whatever follows: up to where a call, or blanks before one, may begin."""
    if _BARE.match(text) or "```json".startswith(text.strip()):
        return ""
    end = text.find(_OPEN)
    if end < 0:
        begun = next((n for n in range(len(_OPEN) - 1, 0, -1) if text.endswith(_OPEN[:n])), 0)
        end = len(text) - begun
    return text[:end].rstrip()


def _calls(text: str, names: set[str]) -> list[ToolCall]:
    """The calls that this JSON text is, all of them or none."""
    if not text.startswith(("{", "[")):
        return []
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return []
    items = value if isinstance(value, list) else [value]
    calls = [_call(item, names) for item in items]
    return [call for call in calls if call is not None] if None not in calls else []


def _call(item: Any, names: set[str]) -> ToolCall | None:
    if not isinstance(item, dict):
        return None
    function = item.get("function")
    inner: dict[str, Any] = function if isinstance(function, dict) else item
    name, arguments = inner.get("name"), inner.get("arguments", inner.get("parameters", {}))
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return None
    if name not in names or not isinstance(arguments, dict):
        return None
    return ToolCall(str(name), json.dumps(arguments, ensure_ascii=False))
