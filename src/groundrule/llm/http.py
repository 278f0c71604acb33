"""A POST and its answer, in the words that every library behind `transport` is spoken to."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

MOST_CONNECTIONS = 1_000
"""At once, of one client in one event loop; further calls wait for one of them to end."""


@dataclass(frozen=True)
class Post:
    """One request; a redirect is another one."""

    url: str
    """http or https, without a login."""
    body: bytes
    headers: Mapping[str, str]
    proxy: str | None
    """The address of an http or https proxy, with its login if it has one."""
    tls: ssl.SSLContext | None
    """Whom to trust, the server or the proxy; None where neither is spoken to by TLS."""


@dataclass(frozen=True)
class Answer:
    """A complete HTTP answer, whatever its status."""

    status: int
    reason: str
    headers: Mapping[str, str]
    """Found by any spelling of their names."""
    body: bytes


class Sender(Protocol):
    """One library, in one event loop. It keeps no connection, follows no redirect, and reads no environment."""

    @property
    def refusals(self) -> tuple[type[Exception], ...]:
        """What it raises, beside TypeError and ValueError, for a request that cannot be written as HTTP."""

    @property
    def faults(self) -> tuple[type[Exception], ...]:
        """What it raises where no whole answer came."""

    async def send(self, post: Post) -> Answer:
        """The answer, unpacked. Waits as long as it takes: the caller's deadline cancels it."""
