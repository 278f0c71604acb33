"""The HTTP face of an engine: `/v1/chat/completions`, `/v1/models`, `/health`, `/metrics`.

Every refusal has OpenAI's shape. A client that leaves frees its place in the engine.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import hmac
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from groundrule.errors import GroundRuleError, QueueFullError
from groundrule.inference.engine import Engine
from groundrule.inference.errors import RequestError
from groundrule.inference.jobs import Job
from groundrule.inference.metrics import CLIENT_LEFT, Metrics, Timed
from groundrule.inference.prepare import Prepared, Preparer
from groundrule.inference.reply import completion
from groundrule.inference.request import (
    BodyTooLargeError,
    EarlyRefusal,
    check_host,
    key_and_slot,
    read_body,
    unless_gone,
)
from groundrule.inference.schema import ChatCompletionBody, parse_body
from groundrule.inference.stream import DONE, AnswerStream, Chunks, Follower, event
from groundrule.models.sampling import Sample

logger = logging.getLogger(__name__)

RETRY_AFTER_S = 1


@dataclass(frozen=True)
class _Asked:
    """A request that the engine has accepted."""

    prepared: Prepared
    job: Job
    follower: Follower
    timed: Timed

    def give_up(self) -> None:
        """Free its places and count its client as gone; without effect once it is answered."""
        self.job.cancel()
        self.timed.over(CLIENT_LEFT)


class Endpoint:
    """Answers requests for the models that are served under their names.

    Without an `api_key` everybody who reaches the address is answered, which is for the loopback interface only:
    requests that name another host are refused then. `context_tokens` may lower the model's own limit.
    """

    def __init__(
        self,
        engine: Engine,
        names: Callable[[], list[str]],
        *,
        api_key: str | None,
        context_tokens: int | None = None,
    ) -> None:
        self.engine = engine
        self.names = names
        self.api_key = api_key
        self.metrics = Metrics(engine)
        self._preparer = Preparer(engine.model, context_tokens)

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/health", self.health),
                Route("/metrics", self.scrape),
                Route("/v1/models", self.models),
                Route("/v1/models/{name:path}", self.model),
                Route("/v1/chat/completions", self.chat, methods=["POST"]),
            ],
            exception_handlers={RequestError: _refusal, HTTPException: _no_such_route},
        )

    async def health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok", "policy_version": self.engine.version})

    async def scrape(self, request: Request) -> Response:
        self._check_access(request)
        return Response(self.metrics.page(), headers={"content-type": self.metrics.content_type})

    async def models(self, request: Request) -> Response:
        self._check_access(request)
        return JSONResponse({"object": "list", "data": [_listed(name) for name in self.names()]})

    async def model(self, request: Request) -> Response:
        self._check_access(request)
        name = str(request.path_params["name"])
        self._check_name(name)
        return JSONResponse(_listed(name))

    async def chat(self, request: Request) -> Response:
        timed = self.metrics.start()
        try:
            response = await self._answer(request, timed)
        except Exception as error:
            response = await _refusal(request, _failure(error))
        except asyncio.CancelledError:
            timed.over(CLIENT_LEFT)
            raise
        if not isinstance(response, StreamingResponse):
            timed.over(response.status_code)
        return response

    async def _answer(self, request: Request, timed: Timed) -> Response:
        self._check_access(request)
        body = parse_body(await read_body(request))
        self._check_name(body.model)
        asked = await self._ask(body, key_and_slot(request, self.api_key)[1], timed)
        if body.stream:
            return AnswerStream(self._stream(asked), on_over=asked.give_up)
        try:
            samples = await unless_gone(request, asyncio.wrap_future(asked.job.future))
        finally:
            asked.job.cancel()  # Without effect once it is finished.
        if samples is None:
            return Response(status_code=CLIENT_LEFT)
        asked.prepared.check_forms()
        tokenizer = self.engine.model.tokenizer
        return JSONResponse(
            completion(body, asked.prepared.prompt_ids, samples, tokenizer, asked.job.version)
        )

    async def _ask(self, body: ChatCompletionBody, slot: int | None, timed: Timed) -> _Asked:
        """Queue the answers of a request."""
        prepared = await self._preparer.prepare(body)
        if body.seed is None:
            seeds = self.engine.seeds_for(slot, body.n)
        else:
            seeds = [body.seed * 1_000_003 + choice for choice in range(body.n)]
        follower = Follower(body.n, on_first=timed.first_token, wanted=body.stream)
        job = Job([prepared.sampling(seed) for seed in seeds], slot, on_progress=follower.heard)
        self.engine.submit(job)
        return _Asked(prepared, job, follower, timed)

    async def _stream(self, asked: _Asked) -> AsyncIterator[bytes]:
        body, prompt_ids = asked.prepared.body, asked.prepared.prompt_ids
        chunks = Chunks(body, prompt_ids, self.engine.model.tokenizer, lambda: asked.job.version)
        ended: list[Sample] = []
        try:
            for chunk in chunks.first():
                yield event(chunk)
            async for new in asked.follower.progress(asked.job):
                for chunk in chunks.of(new):
                    yield event(chunk)
                ended += [new.ended] if new.ended is not None else []
            asked.prepared.check_forms()
            if (total := chunks.total(ended)) is not None:
                yield event(total)
            asked.timed.over(200)
        except Exception as error:
            failure = _failure(error)
            asked.timed.over(failure.status)
            yield event(failure.body())
        yield DONE

    def _check_access(self, request: Request) -> None:
        if self.api_key is None:
            check_host(request)
            return
        given, _ = key_and_slot(request, self.api_key)
        if not hmac.compare_digest(given.encode(), self.api_key.encode()):
            raise RequestError(
                "the API key is missing or wrong; send it as 'Authorization: Bearer KEY', or use the client from "
                "model.openai_client()",
                status=401,
                kind="authentication_error",
                code="invalid_api_key",
            )

    def _check_name(self, name: str) -> None:
        if name not in self.names():
            message = f"the model {name!r} is not served here; served: {', '.join(self.names())}"
            raise RequestError(message, "model", status=404, code="model_not_found")


def _listed(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "groundrule"}


def _failure(error: Exception) -> RequestError:
    """What went wrong on our side, as the client hears of it."""
    if isinstance(error, RequestError):
        return error
    if isinstance(error, QueueFullError):
        wait = {"retry-after": str(RETRY_AFTER_S)}
        return RequestError(str(error), status=429, kind="rate_limit_error", code="queue_full", headers=wait)
    if isinstance(error, GroundRuleError | concurrent.futures.CancelledError):
        return RequestError(str(error) or "the request was cancelled", status=503, kind="server_error")
    logger.error("a request failed", exc_info=error)
    return RequestError(f"{type(error).__name__}: {error}", status=500, kind="server_error")


async def _refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    kind = EarlyRefusal if isinstance(error, BodyTooLargeError) else JSONResponse
    return kind(error.body(), error.status, headers=error.headers)


async def _no_such_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    what = f"{request.method} {request.url.path} is not served here"
    code = "not_found"
    if error.status_code == 405:
        allowed = ", ".join(sorted((error.headers or {}).get("Allow", "").split(", ")))
        what, code = f"{what}; it takes {allowed}", "method_not_allowed"
    refusal = RequestError(what, status=error.status_code, code=code, headers=dict(error.headers or {}))
    return await _refusal(request, refusal)
