"""Sends by the HTTP library that the openai package brings: `httpx2`, or `httpx` before its version 3.

It is imported by its own name: openai's client class would bring all of openai, and not the errors to catch.
"""

from __future__ import annotations

import asyncio
import importlib
import ssl
from contextlib import suppress
from types import ModuleType
from typing import Any

from groundrule.errors import ConfigError
from groundrule.llm.http import MOST_CONNECTIONS, Answer, Post

_OWN_HEADERS = {"Accept-Encoding": "gzip, deflate", "Connection": "close"}


class HttpxSender:
    """Implements `Sender`.

    Each call has a connection pool of its own: one for all looks through all its connections at every call.
    The client class is passed by, because it logs whole addresses.
    """

    def __init__(self) -> None:
        self._http = _library()
        self.refusals: tuple[type[Exception], ...] = (self._http.InvalidURL, self._http.LocalProtocolError)
        self.faults: tuple[type[Exception], ...] = (self._http.HTTPError, OSError)
        self._room = asyncio.Semaphore(MOST_CONNECTIONS)
        self._trusts_nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

    async def send(self, post: Post) -> Answer:
        headers = self._http.Headers(_OWN_HEADERS)
        headers.update(self._http.Headers(post.headers, encoding="utf-8"))
        request = self._http.Request("POST", post.url, headers=headers, content=post.body)
        async with self._room, self._pool(post) as pool:
            response = await pool.handle_async_request(request)
            try:
                raw = await response.aread()
            finally:
                await response.aclose()
        return Answer(response.status_code, response.reason_phrase, response.headers, raw)

    def _pool(self, post: Post) -> Any:
        tls = post.tls or self._trusts_nobody
        return self._http.AsyncHTTPTransport(
            verify=tls,
            trust_env=False,
            limits=self._http.Limits(max_connections=1, max_keepalive_connections=0),
            proxy=self._proxy(post.proxy, tls) if post.proxy else None,
        )

    def _proxy(self, address: str, tls: ssl.SSLContext) -> Any:
        own = {"ssl_context": tls} if address.startswith("https:") else {}
        return self._http.Proxy(address, **own)


def _library() -> ModuleType:
    for name in ("httpx2", "httpx"):
        with suppress(ModuleNotFoundError):
            return importlib.import_module(name)
    raise ConfigError(
        "no HTTP library is installed: neither aiohttp nor the httpx2 or httpx that the openai package brings; "
        "pip install 'groundrule[fast]'"
    )
