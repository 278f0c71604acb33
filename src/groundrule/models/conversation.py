"""Messages in the form that a chat template takes, and the changes that let a refusing template accept them.

Everything here is about messages; `render.py` holds the tokenizer.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
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


def changed(messages: list[Message], changes: Iterable[Change]) -> list[Message]:
    """The conversation with these changes made, in order."""
    for change in changes:
        messages = change(messages)
    return messages


def marked(messages: list[Message], mark: str) -> tuple[list[Message], list[str]]:
    """A copy with a mark for everything that must be shown, and the marks.

    Only an assistant turn's text may be changed by the template (earlier thinking is often dropped),
    unless a call stands beside it.
    """
    result: list[Message] = []
    marks: list[str] = []

    def new() -> str:
        marks.append(f"{mark}{len(marks)}x")
        return marks[-1]

    for message in messages:
        message = dict(message)
        if message["content"] and ("tool_calls" in message or message["role"] != "assistant"):
            message["content"] = new()
        if "tool_calls" in message:
            message["tool_calls"] = [
                {**c, "function": {**c["function"], "name": new()}} for c in message["tool_calls"]
            ]
        result.append(message)
    return result, marks


def shape_of(messages: list[Message]) -> tuple[Any, ...]:
    """What decides, but for the words, how a template treats the messages."""
    return tuple((m["role"], bool(m["content"]), len(m.get("tool_calls", ()))) for m in messages)


def short_call_ids(messages: list[Message]) -> list[Message]:
    """Call ids of 9 letters and digits, the same in call and result."""
    result = []
    for message in messages:
        message = dict(message)
        if "tool_calls" in message:
            message["tool_calls"] = [{**c, "id": _short(c.get("id", ""))} for c in message["tool_calls"]]
        if "tool_call_id" in message:
            message["tool_call_id"] = _short(message["tool_call_id"])
        result.append(message)
    return result


def _short(name: str) -> str:
    whole = len(name) == 9 and name.isascii() and name.isalnum()
    return name if whole else hashlib.sha256(name.encode()).hexdigest()[:9]


def mapped_arguments(messages: list[Message]) -> list[Message]:
    """Raw arguments wrapped into a mapping, for templates that walk them."""
    return _with_calls(messages, lambda given: given if isinstance(given, dict) else {"arguments": given})


def arguments_as_text(messages: list[Message]) -> list[Message]:
    """Arguments as JSON text, for templates that join them to other text."""
    return _with_calls(
        messages, lambda given: json.dumps(given, ensure_ascii=False) if isinstance(given, dict) else given
    )


def _with_calls(messages: list[Message], change: Callable[[Any], Any]) -> list[Message]:
    """The messages with the arguments of every call replaced."""
    return [
        {
            **m,
            "tool_calls": [
                {**c, "function": {**c["function"], "arguments": change(c["function"]["arguments"])}}
                for c in m["tool_calls"]
            ],
        }
        if "tool_calls" in m
        else m
        for m in messages
    ]


def calls_as_text(messages: list[Message]) -> list[Message]:
    """Tool calls as text of their turn, for templates that know no tools."""
    result = []
    for message in messages:
        calls = message.get("tool_calls", [])
        functions = [{key: call["function"].get(key) for key in ("name", "arguments")} for call in calls]
        blocks = [
            f"<tool_call>\n{json.dumps(function, ensure_ascii=False)}\n</tool_call>" for function in functions
        ]
        kept = {key: value for key, value in message.items() if key != "tool_calls"}
        result.append({**kept, "content": _joined("\n", [message["content"], *blocks])})
    return result


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
    result: list[Message] = []
    waiting: list[str] = []
    for message in messages:
        if message["role"] in ("system", "developer"):
            waiting.append(message["content"])
            continue
        if waiting and message["role"] == "user":
            message = {**message, "content": _joined("\n\n", [*waiting, message["content"]])}
        elif waiting:
            result.append({"role": "user", "content": _joined("\n\n", waiting)})
        waiting = []
        result.append(message)
    if waiting:
        result.append({"role": "user", "content": _joined("\n\n", waiting)})
    return result


def merged_turns(messages: list[Message]) -> list[Message]:
    """Neighbouring turns of one role as one turn; tool results stay apart, each answers its own call."""
    result: list[Message] = []
    for message in messages:
        before = result[-1] if result else None
        if before is None or before["role"] != message["role"] or message["role"] == "tool":
            result.append(message)
            continue
        both = {**before, **message, "content": _joined("\n\n", [before["content"], message["content"]])}
        if calls := [*before.get("tool_calls", []), *message.get("tool_calls", [])]:
            both["tool_calls"] = calls
        result[-1] = both
    return result


def _joined(separator: str, texts: Sequence[str]) -> str:
    return separator.join(text for text in texts if text)


# In the order in which they are made (what becomes a user turn is merged last), with what they cost:
# another spelling of the same turn is better than another turn.
_COSTS: dict[Change, int] = {
    short_call_ids: 1,
    mapped_arguments: 1,
    arguments_as_text: 1,
    calls_as_text: 7,
    results_as_user_turns: 6,
    system_in_user_turn: 5,
    merged_turns: 4,
}
FORMS: tuple[tuple[Change, ...], ...] = tuple(
    sorted(
        (chosen for size in range(len(_COSTS) + 1) for chosen in combinations(_COSTS, size)),
        key=lambda chosen: sum(_COSTS[change] for change in chosen),
    )
)
"""Every set of changes, the mildest first."""
