"""What an OpenAI-compatible endpoint answers, read from plain JSON: a reply, or what was wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from groundrule.data.messages import text_of
from groundrule.data.protocols import ChatReply, TopLogprobs, Usage
from groundrule.errors import LlmError

_LONGEST_MESSAGE = 500


@dataclass(frozen=True)
class Fault:
    """What the body of an error answer says."""

    message: str
    code: str | None = None
    param: str | None = None
    """The parameter of ours that is at fault."""


def fault_from(body: bytes, reason: str) -> Fault:
    """The fault in `{"error": {...}}`, or in the forms that other servers use; else the HTTP `reason`.

    Pages of HTML say nothing that a log should hold.
    """
    text = body.decode("utf-8", "replace").strip()
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        data = "" if text.startswith("<") else text
    if isinstance(data, list) and data:
        data = data[0]
    error = data.get("error") or data if isinstance(data, Mapping) else data
    if not isinstance(error, Mapping):
        return Fault((error if isinstance(error, str) and error else reason)[:_LONGEST_MESSAGE])
    code, param = error.get("code"), error.get("param")
    return Fault(
        message=str(error.get("message") or error.get("detail") or reason)[:_LONGEST_MESSAGE],
        code=None if code is None else str(code),
        param=param if isinstance(param, str) else None,
    )


def reply_from(completion: Any, *, model: str, host: str = "the endpoint") -> ChatReply:
    """A reply from the JSON of a chat completion. Text parts are joined; a refusal may be a part too."""
    choice, message = _first_choice(completion, f"{model} at {host}")
    content, refusal = message.get("content"), message.get("refusal")
    if isinstance(content, list):
        parts = [part for part in content if isinstance(part, Mapping)]
        refusal = refusal or "".join(str(part.get("refusal") or "") for part in parts)
        content = text_of(content)
    if content is not None and not isinstance(content, str):
        raise LlmError(
            f"{model} at {host} answered with a content that is a {type(content).__name__} and no text; "
            "check that the endpoint is OpenAI-compatible"
        )
    return ChatReply(
        content=content,
        finish_reason=str(choice.get("finish_reason") or "stop"),
        refusal=str(refusal) if refusal else None,
        reasoning=_text(message.get("reasoning_content")) or _text(message.get("reasoning")),
        usage=_usage_from(completion.get("usage")),
        model=_text(completion.get("model")) or model,
        top_logprobs=_top_logprobs(choice.get("logprobs")),
    )


def _first_choice(completion: Any, what: str) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The choice, and the message in it."""
    choices = completion.get("choices") if isinstance(completion, Mapping) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        raise LlmError(
            f"{what} answered without any choice that has a message; check that the endpoint is "
            "OpenAI-compatible"
        )
    return choice, message


def _top_logprobs(logprobs: Any) -> TopLogprobs:
    """Nothing for what has another form: whoever needs them asks in another way."""
    tokens = logprobs.get("content") if isinstance(logprobs, Mapping) else None
    if not isinstance(tokens, list):
        return ()
    found = tuple(_likeliest(token) for token in tokens)
    return found if any(found) else ()


def _likeliest(token: Any) -> tuple[tuple[str, float], ...]:
    listed = token.get("top_logprobs") if isinstance(token, Mapping) else None
    entries = [entry for entry in listed if isinstance(entry, Mapping)] if isinstance(listed, list) else []
    pairs = [(entry.get("token"), entry.get("logprob")) for entry in entries]
    return tuple(
        (text, float(p))
        for text, p in pairs
        if isinstance(text, str) and isinstance(p, int | float) and p < 0.01
    )  # Some servers round to a little above 0.


def _usage_from(usage: Any) -> Usage:
    if not isinstance(usage, Mapping):
        return Usage()
    details = usage.get("prompt_tokens_details")
    return Usage(
        prompt_tokens=_count(usage.get("prompt_tokens")),
        completion_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_count(details.get("cached_tokens")) if isinstance(details, Mapping) else None,
    )


def _count(value: Any) -> int | None:
    """A number of tokens; None for what is none, since nobody can be charged by it."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value < float("inf") else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
