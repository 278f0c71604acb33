"""A chat client that keeps the books: budget before the call, ledger after it."""

from __future__ import annotations

from dataclasses import replace

from groundrule.data.protocols import ChatClient, ChatReply, ChatRequest
from groundrule.errors import DeadlineError, LlmError
from groundrule.llm.cost import Call, current_ledger


class MeteredClient:
    """Wraps any chat client. Attributes of the client (`base_url`, `takes_images`) show through."""

    def __init__(self, client: ChatClient, *, provider: str = "", is_free: bool = False) -> None:
        self.client = client
        self.provider = provider
        self._is_free = is_free

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The client's reply with its cost filled in; the cost stays None where the price is unknown."""
        ledger = current_ledger()
        ledger.start()
        name = f"{self.provider}/{request.model}" if self.provider else request.model
        try:
            reply = await self.client.complete(request)
        except LlmError as error:
            # An error answer is not charged; whether one is that came too late is not known.
            cost = None if isinstance(error, DeadlineError) and not self._is_free else 0.0
            ledger.record(Call(name, request.purpose, None, None, None, cost, error=type(error).__name__))
            raise
        if reply.cost_usd is None:
            price = ledger.price_of(name)
            cost = 0.0 if self._is_free else price.cost_usd(reply.usage) if price else None
            reply = reply if cost is None else replace(reply, cost_usd=cost)
        ledger.record(call_of(name, request.purpose, reply))
        return reply

    def __getattr__(self, name: str) -> object:
        if name == "client":  # Not set yet while copying or unpickling.
            raise AttributeError(name)
        return getattr(self.client, name)


def call_of(model: str, purpose: str, reply: ChatReply) -> Call:
    """The ledger line of a reply."""
    return Call(
        model=model,
        purpose=purpose,
        prompt_tokens=reply.usage.prompt_tokens,
        completion_tokens=reply.usage.completion_tokens,
        cached_tokens=reply.usage.cached_tokens,
        cost_usd=reply.cost_usd,
        cached=reply.cached,
    )
