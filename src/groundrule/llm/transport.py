"""One POST to an endpoint and the whole of what it answers, through whichever HTTP library is installed.

What must not depend on the library is here: redirects, proxies, certificates, logins, and which error says what.
"""

from __future__ import annotations

import asyncio
import base64
import functools
import re
import ssl
import sys
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urljoin, urlsplit

from groundrule.errors import ConfigError
from groundrule.llm.http import Answer, Post, Sender
from groundrule.llm.retry import UnreachableError

_MOST_REDIRECTS = 3
_AIOHTTP = ((3, 13), (4, 0))
"""From the first, below the second, as in the extra `fast`: another package may have brought another one."""
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[^\x00-\x08\x0a-\x1f\x7f\ud800-\udfff]*")


@dataclass(frozen=True)
class _Loop:
    """What belongs to one event loop."""

    sender: Sender
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
        url, login = _address(url, what)
        headers = _sendable(headers, login, what)
        answer = await self._post(url, body, headers, what)
        for _ in range(_MOST_REDIRECTS):
            target = _moved(url, answer)
            if target is None:
                break
            url, answer = target, await self._post(target, body, headers, what)
        return answer

    async def _post(self, url: str, body: bytes, headers: Mapping[str, str], what: str) -> Answer:
        here = self._here()
        proxy = _proxy(url, here.proxies)
        tls = _trusted() if any(a.startswith("https:") for a in (url, proxy or "")) else None
        try:
            return await here.sender.send(Post(url, body, headers, proxy, tls))
        except here.sender.refusals as error:
            raise _unsendable(what, error) from error
        except here.sender.faults as error:
            said = ": ".join(filter(None, (type(error).__name__, str(error))))
            raise UnreachableError(
                f"{what} cannot be reached ({said}); check that the server runs and the base URL is right"
            ) from error
        except (TypeError, ValueError) as error:
            raise _unsendable(what, error) from error

    def _here(self) -> _Loop:
        """What the running loop has; connections belong to the loop that opened them."""
        loop = asyncio.get_running_loop()
        if loop not in self._loops:
            for other in [other for other in self._loops if other.is_closed()]:
                self._loops.pop(other, None)
            self._loops[loop] = _Loop(_new_sender())
        return self._loops[loop]


def _new_sender() -> Sender:
    """Of the libraries that are installed, the one that takes less CPU time."""
    if _has_aiohttp():
        from groundrule.llm.transport_aiohttp import AiohttpSender

        return AiohttpSender()
    from groundrule.llm.transport_httpx import HttpxSender

    return HttpxSender()


def _has_aiohttp() -> bool:
    try:
        import aiohttp
    except ImportError:
        return False
    version = tuple(int(part) for part in aiohttp.__version__.split(".")[:2])
    return _AIOHTTP[0] <= version < _AIOHTTP[1]


def _address(url: str, what: str) -> tuple[str, str | None]:
    """The address without the login in it, and the header that takes its place."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"{what}: the base URL is no http or https address; correct it")
    login, at, server = parts.netloc.rpartition("@")
    if not at:
        return url, None
    basic = base64.b64encode(":".join(map(unquote, login.partition(":")[::2])).encode())
    return parts._replace(netloc=server).geturl(), f"Basic {basic.decode()}"


def _sendable(headers: Mapping[str, str], login: str | None, what: str) -> dict[str, str]:
    """The headers without the blanks around a value, which are no part of it.

    An error never shows a value: it may be a key.
    """
    sent: dict[str, str] = {}
    for name, value in headers.items():
        if not (isinstance(value, str) and _VALUE.fullmatch(value) and _NAME.fullmatch(name)):
            raise ConfigError(
                f"{what}: the header {name!r} cannot be sent, for it is no text on one line; "
                "check the key and extra_headers"
            )
        if name.lower() in ("content-length", "transfer-encoding"):
            raise ConfigError(
                f"{what}: the header {name!r} belongs to the body; leave it out of extra_headers"
            )
        sent[name] = value.strip(" \t")
    if login and "authorization" not in map(str.lower, sent):
        sent["Authorization"] = login
    return sent


def _unsendable(what: str, error: Exception) -> ConfigError:
    return ConfigError(
        f"{what}: the request cannot be sent ({type(error).__name__}); check the base URL and extra_headers"
    )


def _moved(url: str, answer: Answer) -> str | None:
    """Where on the same server the same request is to be sent."""
    if answer.status not in (307, 308) or "location" not in answer.headers:
        return None
    try:
        target = urljoin(url, answer.headers["location"])
        here, there = urlsplit(url), urlsplit(target)
    except ValueError:  # The location is no address.
        return None
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
