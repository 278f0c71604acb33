"""The page and its few requests. Every reply to a judgement is the next thing to show."""

from __future__ import annotations

import secrets
import socket
from collections.abc import Callable
from importlib import resources
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from groundrule._util.look import with_palette
from groundrule.errors import ConfigError, DataError
from groundrule.inference.server import serve_until_stopped
from groundrule.ranking.guard import Guard
from groundrule.ranking.session import Session
from groundrule.ranking.shown import state_of

_ASSETS = {
    "page.html": "text/html; charset=utf-8",
    "rank.css": "text/css; charset=utf-8",
    "rank.js": "text/javascript; charset=utf-8",
}
_MAX_BODY_BYTES = 64 << 10


class _Asked(BaseModel):
    """What the page sends: the task it shows, and for a judgement its order."""

    model_config = ConfigDict(extra="forbid")

    task: str
    order: list[list[Annotated[int, Field(strict=True)]]] = Field(default_factory=list)


def serve(session: Session, listener: socket.socket, *, on_ready: Callable[[str], None]) -> None:
    """Answer until Ctrl-C or SIGTERM; `on_ready` gets the address with its token. For the main thread."""
    port, token = listener.getsockname()[1], secrets.token_urlsafe(24)
    address = f"http://127.0.0.1:{port}/?token={token}"
    app = ranking_app(session, port=port, token=token)
    serve_until_stopped(app, listener, grace_s=1, on_ready=lambda: on_ready(address))


def ranking_app(session: Session, *, port: int, token: str) -> Starlette:
    """The page for one session, at this port of the loopback interface."""

    async def state(_: Request) -> Response:
        return JSONResponse(state_of(session))

    async def judge(request: Request) -> Response:
        asked = await _asked(request)
        session.judge(asked.task, asked.order)
        return JSONResponse(state_of(session))

    async def skip(request: Request) -> Response:
        session.skip((await _asked(request)).task)
        return JSONResponse(state_of(session))

    async def undo(_: Request) -> Response:
        session.undo()
        return JSONResponse(state_of(session))

    return Starlette(
        routes=[
            Route("/", _page),
            Route("/{name}", _asset),
            Route("/api/state", state),
            Route("/api/judge", judge, methods=["POST"]),
            Route("/api/skip", skip, methods=["POST"]),
            Route("/api/undo", undo, methods=["POST"]),
        ],
        middleware=[Middleware(Guard, port=port, token=token)],
        exception_handlers={ConfigError: _conflict, DataError: _unusable, OSError: _unsaved},
    )


async def _page(_: Request) -> Response:
    return _file("page.html")


async def _asset(request: Request) -> Response:
    name = str(request.path_params["name"])
    if name not in _ASSETS:
        raise HTTPException(404)
    return _file(name)


def _file(name: str) -> Response:
    content = resources.files("groundrule.ranking").joinpath("assets", name).read_text("utf-8")
    if name.endswith(".css"):
        content = with_palette(content)
    return Response(content, headers={"content-type": _ASSETS[name]})


async def _asked(request: Request) -> _Asked:
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _MAX_BODY_BYTES:
            raise HTTPException(413)
    try:
        return _Asked.model_validate_json(body)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise DataError(f"{first['msg']} at {'.'.join(map(str, first['loc'])) or 'the body'}") from error


async def _conflict(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 409)


async def _unusable(_: Request, error: Exception) -> Response:
    return JSONResponse({"error": str(error)}, 422)


async def _unsaved(_: Request, error: Exception) -> Response:
    """A full disk, say: nothing was saved, and the page says so and keeps what was chosen."""
    return JSONResponse({"error": f"not saved: {error}"}, 500)
