"""From a checked request to what the engine samples from: prompt, limit and grammar."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from groundrule.errors import ConfigError, ModelError
from groundrule.inference.answer_form import grammar_of
from groundrule.inference.errors import RequestError
from groundrule.inference.grammar import GrammarConstraint, grammars_of
from groundrule.inference.messages import readable_messages
from groundrule.inference.schema import DEFAULT_MAX_TOKENS, ChatCompletionBody
from groundrule.models.load import LanguageModel
from groundrule.models.sampling import SamplingRequest


@dataclass(frozen=True)
class Prepared:
    """A request that this model can answer."""

    body: ChatCompletionBody
    prompt_ids: list[int]
    limit: int
    begin: Callable[[], GrammarConstraint] | None
    """Begins an answer by the grammar that the request asks for."""
    _begun: list[GrammarConstraint] = field(default_factory=list)

    def sampling(self, seed: int) -> SamplingRequest:
        """One answer of it."""
        constraint = self._constraint if self.begin else None
        return self.body.sampling(self.prompt_ids, seed, limit=self.limit, constraint=constraint)

    def check_forms(self) -> None:
        """Raise `RequestError` when an answer had to be ended because its grammar grew too large."""
        faults = [constraint.fault for constraint in self._begun if constraint.fault]
        if faults:
            message = f"the answer could not be kept in its form: {faults[0]}; simplify the schema"
            raise RequestError(message, status=500, kind="server_error")

    def _constraint(self) -> GrammarConstraint:
        assert self.begin is not None
        self._begun.append(self.begin())
        return self._begun[-1]


class Preparer:
    """Prepares requests for one model; `context_tokens` may lower the model's own limit.

    `default_limit` is how many tokens are sampled at most where a request does not say.
    """

    def __init__(
        self,
        model: LanguageModel,
        context_tokens: int | None = None,
        *,
        default_limit: int = DEFAULT_MAX_TOKENS,
    ) -> None:
        self._model = model
        self.context_tokens = min(context_tokens or model.max_tokens, model.max_tokens)
        self._default_limit = default_limit
        self._grammars = grammars_of(model)

    async def prepare(self, body: ChatCompletionBody) -> Prepared:
        """Raises `RequestError` with the place of what cannot be done."""
        self._check_biases(body)
        prompt_ids = self._prompt(body)
        limit = self._limit(body, len(prompt_ids))
        return Prepared(body, prompt_ids, limit, await self._grammar(body))

    def _prompt(self, body: ChatCompletionBody) -> list[int]:
        messages = readable_messages([m.model_dump(exclude_none=True) for m in body.messages])
        tools = body.tool_dicts if body.tool_choice != "none" else []
        try:
            return self._model.renderer.prompt_ids(messages, tools or None)
        except ModelError as error:
            raise RequestError(str(error), "messages") from error

    def _limit(self, body: ChatCompletionBody, prompt_tokens: int) -> int:
        room = self.context_tokens - prompt_tokens
        wanted = body.asked_limit
        if room >= (wanted or 1):
            return wanted or min(self._default_limit, room)
        asked = f" and {wanted} were asked for" if wanted else ""
        raise RequestError(
            f"the model reads at most {self.context_tokens} tokens, the messages have {prompt_tokens}{asked}; "
            "shorten the messages or lower max_tokens",
            "messages",
            code="context_length_exceeded",
        )

    async def _grammar(self, body: ChatCompletionBody) -> Callable[[], GrammarConstraint] | None:
        grammar = grammar_of(body)
        if grammar is None:
            return None
        try:
            # In a thread: a large vocabulary or schema takes up to a second.
            return await asyncio.to_thread(self._grammars.begin, grammar)
        except ConfigError as error:
            param = "response_format" if body.response_format else "tools"
            raise RequestError(f"{param}: this schema cannot be followed: {error}", param) from error

    def _check_biases(self, body: ChatCompletionBody) -> None:
        size = self._vocabulary
        if unknown := [token for token in body.logit_bias if int(token) >= size]:
            raise RequestError(
                f"logit_bias: {unknown[0]} is no token of this model (0 to {size - 1})", "logit_bias"
            )

    @cached_property
    def _vocabulary(self) -> int:
        return int(self._model.head.weight.shape[0])
