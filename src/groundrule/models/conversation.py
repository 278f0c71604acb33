"""Messages in the form that a chat template takes, and the changes that let a refusing template accept them.

Everything here is about messages; `render.py` holds the tokenizer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from groundrule.data.messages import Message, images_of, text_of
from groundrule.errors import ModelError

Change = Callable[[list[Message]], list[Message]]


def plain_messages(messages: Sequence[Mapping[str, Any]], *, has_developer: bool = False) -> list[Message]:
    """Messages without nulls, with text content and parsed tool-call arguments.

    A `developer` message is a system message unless the template knows that role.
    """
    roles = {"function": "tool"} if has_developer else {"function": "tool", "developer": "system"}
    plain = [_plain_message(index, message) for index, message in enumerate(messages)]
    return [{**m, "role": roles.get(m["role"], m["role"])} for m in plain]


def _plain_message(index: int, message: Mapping[str, Any]) -> Message:
    if images_of(message.get("content")):
        raise ModelError(f"message {index} holds an image, but this model reads text only; leave it out")
    plain = {key: value for key, value in message.items() if value is not None}
    plain["content"] = text_of(message.get("content"))
    calls = plain.pop("tool_calls", None)
    if calls:
        plain["tool_calls"] = [_plain_call(call) for call in calls]
    return plain


def _plain_call(call: Mapping[str, Any]) -> dict[str, Any]:
    plain = {key: value for key, value in call.items() if value is not None}
    function = {key: value for key, value in dict(call.get("function") or {}).items() if value is not None}
    function["arguments"] = _arguments(function.get("arguments"))
    return {**plain, "function": function}


def _arguments(value: Any) -> Any:
    """Arguments as the mapping that templates expect; text that is not a JSON object stays as it was written."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return {}
    if not isinstance(value, str):
        return value
    try:
        parsed = json.loads(value)
    except ValueError:
        return value
    return parsed if isinstance(parsed, dict) else value


def forms(messages: list[Message], required: Sequence[Change] = ()) -> Iterator[list[Message]]:
    """The conversation as it is, then with ever more `CHANGES`, for a template that refuses it.

    `required` changes are made in every form.
    """
    tried: list[list[Message]] = []
    for size in range(len(CHANGES) + 1):
        for chosen in combinations(CHANGES, size):
            if not set(required) <= set(chosen):
                continue
            form = messages
            for change in chosen:
                form = change(form)
            if form not in tried:
                tried.append(form)
                yield form


def short_call_ids(messages: list[Message]) -> list[Message]:
    """Call ids of 9 letters and digits, the same in call and result."""
    changed = []
    for message in messages:
        message = dict(message)
        if "tool_calls" in message:
            message["tool_calls"] = [{**c, "id": _short(c.get("id", ""))} for c in message["tool_calls"]]
        if "tool_call_id" in message:
            message["tool_call_id"] = _short(message["tool_call_id"])
        changed.append(message)
    return changed


def _short(name: str) -> str:
    whole = len(name) == 9 and name.isascii() and name.isalnum()
    return name if whole else hashlib.sha256(name.encode()).hexdigest()[:9]


def mapped_arguments(messages: list[Message]) -> list[Message]:
    """Raw arguments wrapped into a mapping, for templates that walk them."""

    def wrapped(call: dict[str, Any]) -> dict[str, Any]:
        arguments = call["function"]["arguments"]
        if isinstance(arguments, dict):
            return call
        return {**call, "function": {**call["function"], "arguments": {"arguments": arguments}}}

    return [
        {**m, "tool_calls": [wrapped(c) for c in m["tool_calls"]]} if "tool_calls" in m else m
        for m in messages
    ]


def calls_as_text(messages: list[Message]) -> list[Message]:
    """Tool calls as text of their turn, for templates that know no tools."""
    changed = []
    for message in messages:
        calls = message.get("tool_calls", [])
        functions = [{key: call["function"].get(key) for key in ("name", "arguments")} for call in calls]
        blocks = [
            f"<tool_call>\n{json.dumps(function, ensure_ascii=False)}\n</tool_call>" for function in functions
        ]
        kept = {key: value for key, value in message.items() if key != "tool_calls"}
        changed.append({**kept, "content": _joined("\n", [message["content"], *blocks])})
    return changed


def results_as_user_turns(messages: list[Message]) -> list[Message]:
    """Tool results as user turns, for templates without a tool role."""
    return [
        {"role": "user", "content": f"<tool_response>\n{m['content']}\n</tool_response>"}
        if m["role"] == "tool"
        else m
        for m in messages
    ]


def system_in_user_turn(messages: list[Message]) -> list[Message]:
    """System texts at the head of the user turn that follows, or as a user turn of their own."""
    changed: list[Message] = []
    waiting: list[str] = []
    for message in messages:
        if message["role"] in ("system", "developer"):
            waiting.append(message["content"])
            continue
        if waiting and message["role"] == "user":
            message = {**message, "content": _joined("\n\n", [*waiting, message["content"]])}
        elif waiting:
            changed.append({"role": "user", "content": _joined("\n\n", waiting)})
        waiting = []
        changed.append(message)
    if waiting:
        changed.append({"role": "user", "content": _joined("\n\n", waiting)})
    return changed


def merged_turns(messages: list[Message]) -> list[Message]:
    """Neighbouring turns of one role as one turn; tool results stay apart, each answers its own call."""
    changed: list[Message] = []
    for message in messages:
        before = changed[-1] if changed else None
        if before is None or before["role"] != message["role"] or message["role"] == "tool":
            changed.append(message)
            continue
        both = {**before, **message, "content": _joined("\n\n", [before["content"], message["content"]])}
        if calls := [*before.get("tool_calls", []), *message.get("tool_calls", [])]:
            both["tool_calls"] = calls
        changed[-1] = both
    return changed


def _joined(separator: str, texts: list[str]) -> str:
    return separator.join(text for text in texts if text)


# Applied in this order: what becomes a user turn is merged last.
CHANGES: tuple[Change, ...] = (
    short_call_ids,
    mapped_arguments,
    calls_as_text,
    results_as_user_turns,
    system_in_user_turn,
    merged_turns,
)
