"""The HTTP face of an engine: `/v1/chat/completions`, `/v1/models`, `/health`."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import Callable
from typing import Any

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from groundrule.errors import GroundRuleError
from groundrule.inference.engine import Engine, Job
from groundrule.inference.schema import ChatCompletionBody, completion, error_body

SLOT_HEADER = "x-groundrule-slot"
MAX_BODY_BYTES = 8 << 20


class Endpoint:
    """Answers requests for the models that are served under their names."""

    def __init__(self, engine: Engine, names: Callable[[], list[str]], *, api_key: str) -> None:
        self.engine = engine
        self.names = names
        self.api_key = api_key

    def app(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/health", self.health),
                Route("/v1/models", self.models),
                Route("/v1/chat/completions", self.chat, methods=["POST"]),
            ],
            exception_handlers={404: _not_found, 405: _not_found},
        )

    async def health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok", "policy_version": self.engine.version})

    async def models(self, request: Request) -> Response:
        if (refused := self._refused(request)) is not None:
            return refused
        listed = [
            {"id": name, "object": "model", "created": 0, "owned_by": "groundrule"} for name in self.names()
        ]
        return JSONResponse({"object": "list", "data": listed})

    async def chat(self, request: Request) -> Response:
        if (refused := self._refused(request)) is not None:
            return refused
        raw = await request.body()
        if len(raw) > MAX_BODY_BYTES:
            return _invalid(f"the body has {len(raw)} bytes; at most {MAX_BODY_BYTES} are read", status=413)
        try:
            body = ChatCompletionBody.model_validate_json(raw)
        except ValidationError as error:
            return _invalid(*_first_fault(error))
        if body.model not in self.names():
            message = f"the model {body.model!r} is not served here; served: {', '.join(self.names())}"
            return JSONResponse(
                error_body(message, kind="invalid_request_error", param="model", code="model_not_found"), 404
            )
        return await self._answer(body, _slot(request))

    async def _answer(self, body: ChatCompletionBody, slot: int | None) -> Response:
        model = self.engine.model
        messages = [m.model_dump(exclude_none=True) for m in body.messages]
        try:
            prompt_ids = model.renderer.prompt_ids(messages, body.tools)
        except GroundRuleError as error:
            return _invalid(str(error), "messages")
        if len(prompt_ids) + body.limit > model.max_tokens:
            message = (
                f"the model reads at most {model.max_tokens} tokens, the messages have {len(prompt_ids)} "
                f"and {body.limit} were asked for; shorten the messages or lower max_tokens"
            )
            return _invalid(message, "messages", code="context_length_exceeded")
        if body.seed is None:
            seeds = self.engine.seeds_for(slot, body.n)
        else:
            seeds = [body.seed * 1_000_003 + choice for choice in range(body.n)]
        requests = [body.sampling(prompt_ids, seed) for seed in seeds]
        version = self.engine.version
        try:
            samples = await asyncio.wrap_future(self.engine.submit(Job(requests, slot)))
        except GroundRuleError as error:
            return JSONResponse(error_body(str(error), kind="server_error"), 503)
        except Exception as error:
            return JSONResponse(error_body(f"{type(error).__name__}: {error}", kind="server_error"), 500)
        return JSONResponse(completion(body, prompt_ids, samples, model.tokenizer, version))

    def _refused(self, request: Request) -> Response | None:
        given, _ = _key_and_slot(request)
        if hmac.compare_digest(given.encode(), self.api_key.encode()):
            return None
        message = "the API key is missing or wrong; use the client from model.openai_client()"
        return JSONResponse(error_body(message, kind="authentication_error", code="invalid_api_key"), 401)


def _slot(request: Request) -> int | None:
    value = request.headers.get(SLOT_HEADER) or _key_and_slot(request)[1]
    return int(value) if value.isdigit() else None


def _key_and_slot(request: Request) -> tuple[str, str]:
    """The key, and the slot behind it: agents with a client of their own pass on what their policy gave them."""
    given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
    key, _, slot = given.partition(".")
    return key, slot


def _invalid(
    message: str, param: str | None = None, *, code: str | None = None, status: int = 400
) -> Response:
    return JSONResponse(error_body(message, kind="invalid_request_error", param=param, code=code), status)


def _first_fault(error: ValidationError) -> tuple[str, str | None]:
    fault = error.errors()[0]
    place = ".".join(str(part) for part in fault["loc"]) or None
    message = str(fault["msg"]).removeprefix("Value error, ")
    return (f"{place}: {message}" if place else message), place


async def _not_found(request: Request, _: Any) -> Response:
    message = f"{request.method} {request.url.path} is not served here"
    return JSONResponse(error_body(message, kind="invalid_request_error", code="not_found"), 404)
