"""Turn a plain function into a chat client, so that any framework's model can be a judge."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from groundrule.data.protocols import ChatReply, ChatRequest
from groundrule.errors import GroundRuleError, LlmError
from groundrule.llm.scripted import reply_of


class CallableClient:
    """A chat client around `async def judge(messages) -> str` or `async def judge(request) -> ChatReply`.

    The function gets the whole `ChatRequest` when its first parameter is named `request` or annotated
    `ChatRequest`, and otherwise the list of messages. Plain functions work too; they block the loop.
    """

    takes_images = False

    def __init__(self, function: Callable[..., Any]) -> None:
        self.name = getattr(function, "__qualname__", type(function).__name__)
        self._function = function
        self._wants_request = _wants_request(function)

    async def complete(self, request: ChatRequest) -> ChatReply:
        """What the function says; whatever it raises becomes an `LlmError` that names it."""
        given: Any = request if self._wants_request else [dict(message) for message in request.messages]
        try:
            answer = self._function(given)
            if inspect.isawaitable(answer):
                answer = await answer
        except GroundRuleError:
            raise
        except Exception as error:
            raise LlmError(
                f"the judge function {self.name} raised {type(error).__name__}: {error}"
            ) from error
        return reply_of(answer, model=request.model)


def _wants_request(function: Callable[..., Any]) -> bool:
    try:
        first = next(iter(inspect.signature(function).parameters.values()), None)
    except (TypeError, ValueError):
        return False
    if first is None:
        return False
    return first.name == "request" or first.annotation in (ChatRequest, "ChatRequest")
