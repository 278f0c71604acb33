"""Messages as clients send them, checked and put into the one form that the renderer takes.

Text parts become text. What a client sends back from an earlier reply (null or empty fields) is dropped, calls in
the old `function_call` form become tool calls, and what a text model cannot read is refused by its place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from groundrule.data.messages import Message
from groundrule.inference.errors import RequestError

_TEXT = ("text", "input_text", "output_text")
_ECHOED = ("annotations", "audio", "refusal", "function_call")
"""Fields of a reply that mean nothing to a template."""


def readable_messages(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """The messages for the renderer; raises `RequestError` with the place of what cannot be read."""
    result: list[Message] = []
    for index, message in enumerate(messages):
        result.append(_readable(message, f"messages[{index}]", result))
    return result


def _readable(message: Mapping[str, Any], place: str, before: Sequence[Message]) -> Message:
    plain = {key: value for key, value in message.items() if value is not None and key not in _ECHOED}
    plain["content"] = _text(message.get("content"), f"{place}.content") or message.get("refusal") or ""
    if message.get("audio"):
        raise RequestError(
            f"{place}.audio: this model reads text only; send the transcript", f"{place}.audio"
        )
    calls = [_call(call, f"{place}.tool_calls[{i}]") for i, call in enumerate(plain.pop("tool_calls", []))]
    if call := message.get("function_call"):
        calls.append(_call({"id": f"call_{len(before)}", "function": call}, f"{place}.function_call"))
    if calls:
        plain["tool_calls"] = calls
    if plain["role"] == "function":
        plain["role"] = "tool"
        plain.setdefault("tool_call_id", _last_call_id(before))
    return plain


def _text(content: Any, place: str) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        raise RequestError(f"{place}: expected a text or a list of text parts", place)
    return "".join(_part(part, f"{place}[{i}]") for i, part in enumerate(content))


def _part(part: Any, place: str) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else None
    text = part.get("refusal" if kind == "refusal" else "text") if isinstance(part, Mapping) else None
    if kind in (*_TEXT, "refusal") and isinstance(text, str):
        return text
    if kind in _TEXT:
        raise RequestError(f"{place}: a text part needs a 'text' that is a string", place)
    shown = repr(kind) if kind else "without a type"
    raise RequestError(f"{place}: a part {shown}, but this model reads text only; leave it out", place)


def _call(call: Any, place: str) -> dict[str, Any]:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("name"), str):
        raise RequestError(f"{place}: a call needs a function with a name and arguments", place)
    return {**call, "type": "function", "function": dict(function)}


def _last_call_id(before: Sequence[Message]) -> str:
    """Results in the old form name no call; they answer the one before them."""
    calls = [call for message in before for call in message.get("tool_calls", [])]
    return str(calls[-1].get("id", "call_0")) if calls else "call_0"
