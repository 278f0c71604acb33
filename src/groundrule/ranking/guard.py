"""Who may use the page: the person who started it, from a page of its own.

A web page elsewhere can make this person's browser send requests here, and with a name of its own that leads to
127.0.0.1 (DNS rebinding) it could even read the replies. So every request must name this address, come from this
origin where it says where from, and carry the token: once in the address, then as a strict same-site cookie.
"""

from __future__ import annotations

import hmac
import secrets

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


class Guard:
    """Lets through what may be answered, and gives every reply the headers that confine the page."""

    def __init__(self, app: ASGIApp, *, port: int, token: str) -> None:
        self._app = app
        self._hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        self._token = token
        # Cookies are shared by all ports of a host, so the name has the port.
        self._cookie = f"groundrule-rank-{port}"
        self._cookie_value = secrets.token_urlsafe(32)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = Request(scope)
        has_token = _same(request.query_params.get("token"), self._token)
        why = self._refusal(request, has_token)

        async def send_confined(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                if why is None and has_token:
                    headers.append(
                        "set-cookie",
                        f"{self._cookie}={self._cookie_value}; Path=/; HttpOnly; SameSite=Strict",
                    )
            await send(message)

        answer = self._app if why is None else PlainTextResponse(why + "\n", status_code=403)
        await answer(scope, receive, send_confined)

    def _refusal(self, request: Request, has_token: bool) -> str | None:
        host = request.headers.get("host", "")
        if host not in self._hosts:
            return f"the host {host!r} is not served here; open the address that the command printed"
        origin = request.headers.get("origin")
        if origin is None and request.method not in ("GET", "HEAD"):
            return "the request does not say which page it comes from (no Origin); use the page"
        if origin not in (None, f"http://{host}"):
            return f"the origin {origin!r} may not ask here; open the address that the command printed"
        if not (has_token or _same(request.cookies.get(self._cookie), self._cookie_value)):
            return "the token is missing or wrong; open the whole address that the command printed"
        return None


def _same(given: str | None, wanted: str) -> bool:
    return given is not None and hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())
