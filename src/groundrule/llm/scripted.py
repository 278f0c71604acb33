"""ScriptedClient: a chat model whose answers are written down beforehand.

For tests and demos that must run without a network: it plays a list, a generator or a function, and
keeps every request it was given.
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from groundrule.data.protocols import ChatReply, ChatRequest, TopLogprobs, Usage
from groundrule.errors import LlmError

Scripted = str | ChatReply | Exception | Mapping[str, Any]
"""One scripted answer: its text, a whole reply, an error to raise, or a dict (see `reply_of`)."""

_REPLY_KEYS = {
    "content",
    "finish_reason",
    "reasoning",
    "reasoning_content",
    "refusal",
    "top_logprobs",
    "usage",
}


class ScriptedClient:
    """Answers from a script: a list or generator of answers, or a function of the request.

    `requests` holds every request in order. A script that runs out raises `LlmError`, unless
    `repeat_last` is set. `delay_s` makes each answer take that long.
    """

    def __init__(
        self,
        replies: Iterable[Scripted] | Callable[[ChatRequest], Any],
        *,
        repeat_last: bool = False,
        delay_s: float = 0.0,
        takes_images: bool = False,
    ) -> None:
        self.requests: list[ChatRequest] = []
        self.takes_images = takes_images
        self.base_url = "scripted:"
        self._play: Callable[[ChatRequest], Any] | None = None
        self._script: Iterator[Scripted] = iter(())
        if callable(replies):
            self._play = replies
        else:
            self._script = iter([replies] if isinstance(replies, str | ChatReply | Mapping) else replies)
        self._repeat_last = repeat_last
        self._last: Scripted | None = None
        self._delay_s = delay_s

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The next answer of the script."""
        self.requests.append(request)
        answer = self._next(request)
        if inspect.isawaitable(answer):
            answer = await answer
        if self._delay_s:
            await asyncio.sleep(self._delay_s)
        if isinstance(answer, Exception):
            raise answer
        return reply_of(answer, model=request.model)

    def _next(self, request: ChatRequest) -> Any:
        if self._play is not None:
            return self._play(request)
        try:
            self._last = next(self._script)
        except StopIteration:
            if not self._repeat_last or self._last is None:
                raise LlmError(
                    f"the script has {len(self.requests) - 1} answers and was asked once more; "
                    "add answers, or set repeat_last=True"
                ) from None
        return self._last


def reply_of(answer: Any, *, model: str = "") -> ChatReply:
    """A reply from what a script or a user's function gives.

    A dict with a reply's own keys (`content`, `refusal`, `reasoning_content`, `finish_reason`, ...) is
    that reply; any other dict or list is sent as JSON text. `top_logprobs` is a list with a dict for each token,
    from a text to its log-probability.
    """
    if isinstance(answer, ChatReply):
        return answer
    if isinstance(answer, str):
        return ChatReply(content=answer, model=model)
    if isinstance(answer, Mapping) and answer.keys() & _REPLY_KEYS:
        return ChatReply(
            content=answer.get("content"),
            finish_reason=answer.get("finish_reason") or "stop",
            refusal=answer.get("refusal"),
            reasoning=answer.get("reasoning") or answer.get("reasoning_content"),
            usage=_usage_of(answer.get("usage")),
            model=model,
            top_logprobs=_top_logprobs_of(answer.get("top_logprobs")),
        )
    if isinstance(answer, Mapping | list):
        return ChatReply(content=json.dumps(answer, ensure_ascii=False), model=model)
    raise LlmError(f"a chat answer must be a text, a dict or a ChatReply, not {type(answer).__name__}")


def _usage_of(usage: Any) -> Usage:
    if isinstance(usage, Usage):
        return usage
    return Usage(
        **{key: (usage or {}).get(key) for key in ("prompt_tokens", "completion_tokens", "cached_tokens")}
    )


def _top_logprobs_of(tokens: Iterable[Mapping[str, float]] | None) -> TopLogprobs:
    return tuple(tuple(likeliest.items()) for likeliest in tokens or ())
