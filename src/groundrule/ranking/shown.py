"""A task as the page shows it: texts and labels, and nothing that tells whose answer is whose.

The page puts every text in as text, so markup in an answer has no effect. What text itself can do, hiding characters or
turning its neighbours round, is made visible here.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from groundrule.data.messages import Message, Tools, images_of, text_of
from groundrule.ranking.session import Session

_ROLES = {
    "system": "Instructions to the agent",
    "developer": "Instructions to the agent",
    "user": "User",
    "assistant": "Agent",
    "tool": "Tool result",
}
_PLAIN = frozenset("\n\t\u200c\u200d\u200e\u200f\u061c\u00ad")
"""Invisible, but part of ordinary writing: joiners, marks of direction, soft hyphens."""
_IMAGE_NAME_CHARS = 60


def state_of(session: Session) -> dict[str, Any]:
    """All that the page knows."""
    task = session.current()
    return {
        "annotator": visible(session.annotator),
        "mode": session.mode,
        "done": session.done,
        "total": len(session.tasks),
        "skipped": session.skipped,
        "can_undo": session.can_undo,
        "task": None
        if task is None
        else {
            "key": task.key,
            "prompt": [_message(m) for m in task.asked.prompt],
            "tools": _tools(task.asked.tools),
            "answers": [[_message(m) for m in answer.messages] for answer in task.answers],
        },
    }


def visible(text: str) -> str:
    """Control characters, half surrogates and marks that turn text round, as what they are."""
    return "".join(map(_visible, text.replace("\r\n", "\n")))


def _visible(character: str) -> str:
    if character in _PLAIN or unicodedata.category(character) not in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return character
    return f"[U+{ord(character):04X}]"


def _message(message: Message) -> dict[str, Any]:
    role = str(message.get("role") or "")
    label = _ROLES.get(role, role)
    if role == "tool" and message.get("name"):
        label = f"{label} of {message['name']}"
    pieces = [
        text_of(message.get("content")),
        *(_image(part) for part in images_of(message.get("content"))),
        *(_call(call) for call in message.get("tool_calls") or []),
    ]
    text = "\n\n".join(piece for piece in pieces if piece)
    return {"role": visible(label), "text": visible(text) or "(empty)"}


def _image(part: Mapping[str, Any]) -> str:
    """Its address only: nothing is loaded from elsewhere."""
    given = part.get("image_url")
    url = str(given.get("url", "") if isinstance(given, Mapping) else given or "")
    name = url.partition(",")[0] if url.startswith("data:") else url
    return f"[image, not shown: {name[:_IMAGE_NAME_CHARS]}]"


def _call(call: Any) -> str:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping):
        return f"calls {json.dumps(call, ensure_ascii=False)}"
    arguments = function.get("arguments")
    written = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return f"calls {function.get('name')}({written})"


def _tools(tools: Tools | None) -> list[dict[str, str]]:
    return [_tool(tool) for tool in _mappings(tools or [])]


def _tool(tool: Mapping[str, Any]) -> dict[str, str]:
    function = tool.get("function")
    told = function if isinstance(function, Mapping) else tool
    parameters = told.get("parameters")
    return {
        "name": visible(str(told.get("name") or "a tool")),
        "about": visible(str(told.get("description") or "")),
        "parameters": visible(json.dumps(parameters, ensure_ascii=False, indent=2)) if parameters else "",
    }


def _mappings(items: Iterable[Any]) -> list[Mapping[str, Any]]:
    return [item for item in items if isinstance(item, Mapping)]
