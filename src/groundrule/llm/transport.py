"""One POST to an endpoint and the whole of what it answers, through `aiohttp`, which is imported on first use."""

from __future__ import annotations

import asyncio
import functools
import io
import ssl
import sys
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urljoin, urlsplit

from groundrule.errors import ConfigError
from groundrule.llm.retry import UnreachableError

_MOST_CONNECTIONS = 1_000
"""At once, of one client in one event loop; further calls wait for one of them to end."""
_LONGEST_HEADER = 65_536
_LARGE = 1 << 20
_MOST_REDIRECTS = 3


@dataclass(frozen=True)
class Answer:
    """A complete HTTP answer, whatever its status."""

    status: int
    reason: str
    headers: Mapping[str, str]
    """Found by any spelling of their names."""
    body: bytes


@dataclass(frozen=True)
class _Loop:
    """What belongs to one event loop."""

    connector: Any
    proxies: Mapping[str, str] = field(default_factory=urllib.request.getproxies)


class Transport:
    """Posts from any event loop.

    Connections are not kept: an idle one that the server has closed fails the next call. So nothing is left
    open between calls, and nothing has to be closed at the end.
    """

    def __init__(self) -> None:
        self._loops: dict[asyncio.AbstractEventLoop, _Loop] = {}

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], *, what: str) -> Answer:
        """The answer, also one with an error status; `UnreachableError` about `what` where none came.

        A redirect is followed only where it stays with the same server; another one must not get the key.
        """
        answer = await self._post(url, body, headers, what)
        for _ in range(_MOST_REDIRECTS):
            target = _moved(url, answer)
            if target is None:
                break
            url, answer = target, await self._post(target, body, headers, what)
        return answer

    async def _post(self, url: str, body: bytes, headers: Mapping[str, str], what: str) -> Answer:
        import aiohttp

        here = self._here()
        try:
            async with aiohttp.request(
                "POST",
                url,
                data=body if len(body) < _LARGE else io.BytesIO(body),  # Written in pieces, not at once.
                headers=headers,
                allow_redirects=False,
                connector=here.connector,
                proxy=_proxy(url, here.proxies),
                ssl=_trusted() if url.startswith("https:") else True,
                timeout=aiohttp.ClientTimeout(total=None),  # The caller's deadline holds for the whole call.
                max_line_size=_LONGEST_HEADER,
                max_field_size=_LONGEST_HEADER,
            ) as response:
                raw = await response.read()
                return Answer(response.status, response.reason or "", response.headers, raw)
        except (aiohttp.InvalidURL, aiohttp.NonHttpUrlClientError) as error:
            raise ConfigError(f"{what}: the base URL is no http or https address; correct it") from error
        except (aiohttp.ClientError, OSError) as error:
            raise UnreachableError(
                f"{what} cannot be reached ({type(error).__name__}: {error}); "
                "check that the server runs and the base URL is right"
            ) from error
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"{what}: the headers cannot be sent ({error}); check the key and extra_headers"
            ) from error

    def _here(self) -> _Loop:
        """What the running loop has; connections belong to the loop that opened them."""
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            import aiohttp

            for other in [other for other in self._loops if other.is_closed()]:
                self._loops.pop(other, None)
            self._loops[loop] = _Loop(aiohttp.TCPConnector(limit=_MOST_CONNECTIONS, force_close=True))
        return self._loops[loop]


def _moved(url: str, answer: Answer) -> str | None:
    """Where on the same server the same request is to be sent."""
    if answer.status not in (307, 308) or "location" not in answer.headers:
        return None
    target = urljoin(url, answer.headers["location"])
    here, there = urlsplit(url), urlsplit(target)
    stays = here.netloc == there.netloc and there.scheme in (here.scheme, "https")
    return target if stays else None


def _proxy(url: str, proxies: Mapping[str, str]) -> str | None:
    """The proxy that the environment names for this address."""
    parts = urlsplit(url)
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if not proxy or urllib.request.proxy_bypass(parts.hostname or ""):
        return None
    proxy = proxy if "://" in proxy else f"http://{proxy}"
    if not proxy.startswith(("http://", "https://")):
        raise ConfigError(
            f"the environment names a {urlsplit(proxy).scheme} proxy for {parts.hostname}, and only http and https "
            "proxies can be used; name such a one, or put the host into NO_PROXY"
        )
    return proxy


@functools.cache
def _trusted() -> ssl.SSLContext:
    """The certificates that the system trusts; on Linux those of SSL_CERT_FILE and SSL_CERT_DIR where set."""
    if sys.platform in ("darwin", "win32"):  # Python finds few of theirs by itself.
        import truststore

        return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return ssl.create_default_context()
