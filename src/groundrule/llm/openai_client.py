"""Chat with any OpenAI-compatible endpoint through the `openai` package, which is imported on first use."""

from __future__ import annotations

import asyncio
import os
import time
import weakref
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from groundrule.data.messages import text_of
from groundrule.data.protocols import ChatReply, ChatRequest, Usage
from groundrule.errors import ConfigError, LlmError, ProviderError
from groundrule.llm import params as model_params
from groundrule.llm.retry import Retry, UnreachableError, parse_retry_after

OPENAI_URL = "https://api.openai.com/v1"

_REMEDIES = {
    401: "check the key in {key_variable}",
    403: "this key may not use the model; check its permissions",
    404: "check the model's name and the base URL",
    413: "the request is too large; shorten the trajectories or use fewer per group",
    429: "the rate limit or quota is reached; wait, or lower the concurrency",
}


class OpenAIClient:
    """Implements `ChatClient`.

    Without `base_url` and `api_key` the environment variables are read at each call. A parameter that the
    endpoint refuses with a 400 is dropped (a token limit renamed) and the call made once more; that is
    remembered for the model. `model` is asked for when the client itself is given as a judge.
    """

    def __init__(
        self,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout_s: float | None = None,
        attempts: int | None = None,
        retry: Retry | None = None,
        key_variable: str = "OPENAI_API_KEY",
        url_variable: str = "OPENAI_BASE_URL",
        default_url: str = OPENAI_URL,
        needs_key: bool = True,
        model: str = "",
    ) -> None:
        self.model = model
        retry = retry or Retry()
        if timeout_s is not None:
            retry = replace(retry, deadline_s=float(timeout_s))
        self.retry = retry if attempts is None else replace(retry, attempts=attempts)
        self._given_url, self._given_key = base_url, api_key
        self._key_variable, self._url_variable = key_variable, url_variable
        self._default_url, self._needs_key = default_url, needs_key
        self._refused: dict[tuple[str, str], dict[str, None]] = {}
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, dict[tuple[str, str], Any]]
        self._clients = weakref.WeakKeyDictionary()

    @property
    def base_url(self) -> str:
        """Where calls made now would go. An address without a path gets `/v1`, as such servers have it."""
        override = os.environ.get(self._url_variable) if self._url_variable else None
        url = self._given_url or override or self._default_url
        return url.rstrip("/") + "/v1" if urlsplit(url).path in ("", "/") else url

    def check_key(self) -> str:
        """The key that calls made now would use; `ConfigError` where one is needed and missing."""
        key = self._given_key or (os.environ.get(self._key_variable) if self._key_variable else None)
        if key:
            return key
        if self._needs_key and self.base_url == self._default_url:
            raise ConfigError(
                f"{_host(self.base_url)} needs a key and {self._key_variable} is not set; export it, or use "
                "a judge that needs none, such as 'local/likelihood' or 'ollama/...'"
            )
        return "none"

    async def complete(self, request: ChatRequest) -> ChatReply:
        """The endpoint's reply. Raises `ProviderError`, `DeadlineError` or another `LlmError`."""
        url, key = self.base_url, self.check_key()
        if request.params.get("stream"):
            raise ConfigError("stream=True cannot be used here: replies are read whole; leave it out")

        async def call(seconds_left: float) -> ChatReply:
            return await self._adapting(request, url, key, seconds_left)

        return await self.retry.run(call, what=f"{request.model} at {_host(url)}")

    async def _adapting(self, request: ChatRequest, url: str, key: str, seconds_left: float) -> ChatReply:
        """One call; a parameter that the endpoint does not know is taken out once."""
        import openai

        refused = self._refused.setdefault((url, request.model), {})
        params = model_params.adapted(model_params.fitted(request.model, request.params), refused)
        try:
            try:
                return await self._send(request, params, url, key, seconds_left)
            except (openai.BadRequestError, openai.UnprocessableEntityError) as error:
                parameter = model_params.refused_param(params, _message_of(error), error.code, error.param)
                if parameter is None:
                    raise
                refused[parameter] = None
            params = model_params.adapted(params, refused)
            return await self._send(request, params, url, key, seconds_left)
        except openai.APIStatusError as error:
            raise self._provider_error(error, request.model, url) from error

    async def _send(
        self, request: ChatRequest, params: Mapping[str, Any], url: str, key: str, seconds_left: float
    ) -> ChatReply:
        import openai
        from openai.types.chat import ChatCompletion

        body = {name: value for name, value in params.items() if name != "extra_headers"}
        try:
            # Not `chat.completions.create`, which spends as long on walking through the messages as on sending them.
            completion = await self._client(url, key).post(
                "/chat/completions",
                cast_to=ChatCompletion,
                body={"model": request.model, "messages": [_encodable(m) for m in request.messages], **body},
                options={"headers": params.get("extra_headers") or {}, "timeout": seconds_left},
            )
        except openai.APIConnectionError as error:  # Also timeouts of the connection.
            cause = error.__cause__ or error
            raise UnreachableError(
                f"{request.model} at {_host(url)} cannot be reached ({type(cause).__name__}: {cause}); "
                "check that the server runs and the base URL is right"
            ) from error
        except openai.APIStatusError:
            raise
        except (openai.OpenAIError, ValueError) as error:
            raise LlmError(
                f"{request.model} at {_host(url)} gave an answer that cannot be read: {error}; "
                "check that the base URL is an OpenAI-compatible endpoint"
            ) from error
        return reply_from(completion, model=request.model, host=_host(url))

    def _client(self, url: str, key: str) -> Any:
        """One SDK client per event loop: connections belong to the loop that opened them."""
        from openai import AsyncOpenAI

        clients = self._clients.setdefault(asyncio.get_running_loop(), {})
        if (url, key) not in clients:
            # Connections are not kept: an idle one that the server has closed fails the next call.
            clients[url, key] = AsyncOpenAI(
                base_url=url, api_key=key, max_retries=0, default_headers={"Connection": "close"}
            )
        return clients[url, key]

    def _provider_error(self, error: Any, model: str, url: str) -> ProviderError:
        remedy = _REMEDIES.get(error.status_code, "").format(key_variable=self._key_variable or "api_key")
        message = f"{model} at {_host(url)} answered {error.status_code}: {_message_of(error)}"
        return ProviderError(
            message + (f"; {remedy}" if remedy else ""),
            status=error.status_code,
            code=error.code,
            retry_after_s=parse_retry_after(error.response.headers.get("retry-after"), now=time.time()),
        )


def _message_of(error: Any) -> str:
    body = error.body if isinstance(error.body, Mapping) else {}
    return str(body.get("message") or error.message)[:500]


def reply_from(completion: Any, *, model: str, host: str = "the endpoint") -> ChatReply:
    """A reply from the SDK's completion object. Text parts are joined; a refusal may be a part too."""
    choices = getattr(completion, "choices", None)
    if not choices:
        raise LlmError(
            f"{model} at {host} answered without any choice; check that the endpoint is OpenAI-compatible"
        )
    choice = choices[0]
    message = choice.message
    content: Any = message.content
    refusal = getattr(message, "refusal", None)
    if isinstance(content, list):
        parts = [part if isinstance(part, Mapping) else part.model_dump() for part in content]
        refusal = refusal or "".join(str(part.get("refusal") or "") for part in parts) or None
        content = text_of(parts)
    return ChatReply(
        content=content,
        finish_reason=choice.finish_reason or "stop",
        refusal=refusal,
        reasoning=getattr(message, "reasoning_content", None) or getattr(message, "reasoning", None),
        usage=_usage_from(getattr(completion, "usage", None)),
        model=getattr(completion, "model", None) or model,
    )


def _usage_from(usage: Any) -> Usage:
    if usage is None:
        return Usage()
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(
        prompt_tokens=getattr(usage, "prompt_tokens", None),
        completion_tokens=getattr(usage, "completion_tokens", None),
        cached_tokens=getattr(details, "cached_tokens", None),
    )


def _host(url: str) -> str:
    """Host and port only: a URL may carry credentials."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.hostname or url}{port}"


def _encodable(value: Any) -> Any:
    """The same value with halves of surrogate pairs replaced, which no HTTP body can carry."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, Mapping):
        return {key: _encodable(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_encodable(inner) for inner in value]
    return value
