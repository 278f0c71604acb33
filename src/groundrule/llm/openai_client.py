"""Chat with any OpenAI-compatible endpoint."""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from groundrule.data.protocols import ChatReply, ChatRequest
from groundrule.errors import ConfigError, LlmError, ProviderError
from groundrule.llm import params as model_params
from groundrule.llm.completion import fault_from, reply_from
from groundrule.llm.http import Answer
from groundrule.llm.retry import Retry, parse_retry_after
from groundrule.llm.transport import Transport

OPENAI_URL = "https://api.openai.com/v1"

_OPENAI_HEADERS = {"OPENAI_ORG_ID": "OpenAI-Organization", "OPENAI_PROJECT_ID": "OpenAI-Project"}
"""Which of a user's organizations and projects is charged, where the key is good for several."""

_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)

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
        self._transport = Transport()

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

        async def call(_seconds_left: float) -> ChatReply:
            return await self._adapting(request, url, key)

        return await self.retry.run(call, what=f"{request.model} at {_host(url)}")

    async def _adapting(self, request: ChatRequest, url: str, key: str) -> ChatReply:
        """One call; a parameter that the endpoint does not know is taken out once."""
        refused = self._refused.setdefault((url, request.model), {})
        params = model_params.adapted(model_params.fitted(request.model, request.params), refused)
        answer = await self._send(request, params, url, key)
        if answer.status in (400, 422):
            fault = fault_from(answer.body, answer.reason)
            parameter = model_params.refused_param(params, fault.message, fault.code, fault.param)
            if parameter is not None:
                refused[parameter] = None
                answer = await self._send(request, model_params.adapted(params, refused), url, key)
        if not 200 <= answer.status < 300:
            raise self._provider_error(answer, request.model, url)
        try:
            completion = json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise LlmError(
                f"{request.model} at {_host(url)} gave an answer that cannot be read: {error}; "
                "check that the base URL is an OpenAI-compatible endpoint"
            ) from error
        return reply_from(completion, model=request.model, host=_host(url))

    async def _send(self, request: ChatRequest, params: Mapping[str, Any], url: str, key: str) -> Answer:
        what = f"{request.model} at {_host(url)}"
        body = {name: value for name, value in params.items() if name != "extra_headers"}
        try:
            written = _json.encode({"model": request.model, "messages": list(request.messages), **body})
        except (TypeError, ValueError) as error:
            raise ConfigError(f"the request to {what} is no JSON: {error}; change that parameter") from error
        return await self._transport.post(
            _completions(url),
            written.encode("utf-8", "replace"),  # Halves of surrogate pairs: no HTTP body can carry them.
            self._headers(url, key, params.get("extra_headers") or {}),
            what=what,
        )

    def _headers(self, url: str, key: str, extra: Mapping[str, str]) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            "User-Agent": "groundrule",
        }
        if "@" not in urlsplit(url).netloc:  # A login in the address takes the place of the key.
            headers["Authorization"] = f"Bearer {key}"
        if self._key_variable == "OPENAI_API_KEY":
            for variable, name in _OPENAI_HEADERS.items():
                if value := os.environ.get(variable):
                    headers[name] = value
        given = {name.lower() for name in extra}
        return {**{name: value for name, value in headers.items() if name.lower() not in given}, **extra}

    def _provider_error(self, answer: Answer, model: str, url: str) -> ProviderError:
        fault = fault_from(answer.body, answer.reason)
        remedy = _REMEDIES.get(answer.status, "").format(key_variable=self._key_variable or "api_key")
        if 300 <= answer.status < 400 and (location := answer.headers.get("location")):
            remedy = f"it points to {location[:200]!r}; give the address that is right as the base URL"
        message = f"{model} at {_host(url)} answered {answer.status}: {fault.message}"
        return ProviderError(
            message + (f"; {remedy}" if remedy else ""),
            status=answer.status,
            code=fault.code,
            retry_after_s=parse_retry_after(answer.headers.get("retry-after"), now=time.time()),
        )


@functools.lru_cache(maxsize=64)
def _completions(url: str) -> str:
    """Where under a base URL chat completions are asked for; its query, if any, stays behind."""
    parts = urlsplit(url)
    return parts._replace(path=f"{parts.path.rstrip('/')}/chat/completions", fragment="").geturl()


@functools.lru_cache(maxsize=64)
def _host(url: str) -> str:
    """Host and port only: a URL may carry credentials."""
    parts = urlsplit(url)
    port = f":{parts.port}" if parts.port else ""
    return f"{parts.hostname or url}{port}"
