"""Judges that run in this process: `local/likelihood[:MODEL]`, or `local/MODEL`, any model as a chat client.

A chat judge answers with the frozen weights, adapter off, which it shares with the policy in training. Its replies keep
to the schema that is asked for, whatever the model can do.
"""

from __future__ import annotations

import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from groundrule._util.aio import on_model_thread
from groundrule.data.protocols import ChatReply, ChatRequest, TopLogprobs, Usage
from groundrule.errors import ConfigError, LlmError, ProviderError
from groundrule.inference.errors import RequestError
from groundrule.inference.prepare import Prepared, Preparer
from groundrule.inference.schema import ChatCompletionBody, first_fault
from groundrule.models import embedded
from groundrule.models.decoder import CACHE_BYTES
from groundrule.models.generate import generate
from groundrule.models.judges import likelihood_judge
from groundrule.models.load import LanguageModel
from groundrule.models.pool import for_judging
from groundrule.models.prefix_cache import PrefixCache
from groundrule.models.sampling import Sample

LONGEST_REPLY = 2048
"""Tokens, where the request does not say and the context has room."""

QUIET_S = 0.02
"""Without a further call, until a batch begins."""

_DEFAULTS = {"temperature": 0.0}
"""The same question gets the same verdict; orders, passes and asking again change the question."""


def local_judge(name: str, params: dict[str, Any] | None = None) -> Any:
    """The judge behind `local/<name>`: a scorer for `likelihood`, else a chat client."""
    if name.partition(":")[0] == "likelihood":
        return likelihood_judge(name, params)
    if name != embedded.NAME and "/" not in name and not Path(name).is_dir():
        raise ConfigError(
            f"'local/{name}' is not a judge: {name!r} is no folder and no Hugging Face id; use 'local/likelihood' "
            f"(or 'local/likelihood:MODEL'), 'local/{embedded.NAME}', or 'local/MODEL' with a folder or an id"
        )
    model = for_judging(name)
    client = _clients.get(id(model)) or LocalClient(model)
    _clients[id(model)] = client
    return client


_clients: weakref.WeakValueDictionary[int, LocalClient] = weakref.WeakValueDictionary()
"""By model: those who ask at the same time share one, and with it their batches."""


@dataclass(eq=False)
class _Call:
    """A call that waits for the model, or has been answered."""

    prepared: Prepared
    sample: Sample | None = None


class LocalClient:
    """Implements `ChatClient`. Calls that wait at the same time are answered in one batch."""

    base_url = "local:"
    takes_images = False
    keeps_schemas = True
    """Replies follow the schema of a request to the letter, so it may be as narrow as one likes."""

    def __init__(self, model: LanguageModel) -> None:
        self._model = model
        self._preparer = Preparer(model, default_limit=LONGEST_REPLY)
        self._waiting: list[_Call] = []
        self._read = PrefixCache(CACHE_BYTES)
        """Of the weights without an adapter, which never change."""

    @property
    def context_tokens(self) -> int:
        """What prompt and reply may take together."""
        return self._preparer.context_tokens

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The model's answer. Raises `ProviderError` for a request that it cannot answer, as an endpoint would."""
        call = _Call(await self._prepared(request))
        self._waiting.append(call)
        # The first of several calls answers them all; the others find that done when their turn comes.
        await on_model_thread(self._answer_waiting)
        if call.sample is None:
            raise LlmError(f"{request.model} did not answer in this process; its batch failed")
        call.prepared.check_forms()
        return ChatReply(
            content=call.sample.text,
            finish_reason=call.sample.finish_reason,
            usage=Usage(len(call.prepared.prompt_ids), len(call.sample.token_ids)),
            cost_usd=0.0,
            model=request.model,
            top_logprobs=self._top_logprobs(call.sample),
        )

    def _top_logprobs(self, sample: Sample) -> TopLogprobs:
        """As texts. The token that ends the answer has its place among them."""
        decode = self._model.tokenizer.decode
        return tuple(
            tuple((decode([token]), p) for token, p in likeliest) for likeliest in sample.top_logprobs
        )

    async def _prepared(self, request: ChatRequest) -> Prepared:
        body = {
            **_DEFAULTS,
            **request.params,
            "model": request.model,
            "messages": [dict(m) for m in request.messages],
        }
        try:
            return await self._preparer.prepare(_checked(body))
        except RequestError as error:
            message = f"{request.model} cannot answer this in this process: {error}"
            raise ProviderError(message, status=error.status, code=error.code) from error

    def _answer_waiting(self) -> None:
        self._let_others_come()
        calls, self._waiting = self._waiting, []
        if not calls:
            return
        requests = [call.prepared.sampling(call.prepared.body.seed or 0) for call in calls]
        with self._model.lock, self._model.base_only():
            samples = generate(self._model, requests, cache=self._read)
        for call, sample in zip(calls, samples, strict=True):
            call.sample = sample

    def _let_others_come(self) -> None:
        """Until no further call comes: those whose answers came together ask again together, one after the other.

        A batch of a few takes nearly as long as one of all of them.
        """
        seen = 0
        while len(self._waiting) > seen:
            seen = len(self._waiting)
            time.sleep(QUIET_S)


def _checked(body: Mapping[str, Any]) -> ChatCompletionBody:
    try:
        return ChatCompletionBody.model_validate(body)
    except ValidationError as error:
        raise first_fault(error) from error
