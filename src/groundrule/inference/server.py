"""Runs the endpoint: on 127.0.0.1 in a thread beside the user's program, or as a program of its own."""

from __future__ import annotations

import contextlib
import errno
import ipaddress
import signal
import socket
import threading
import time
from collections.abc import Callable

import uvicorn
from starlette.applications import Starlette

from groundrule.errors import ModelError


class LocalServer:
    """Listens on a free loopback port from construction until `close`."""

    def __init__(self, app: Starlette) -> None:
        self._socket = bound("127.0.0.1", 0)
        self._server = uvicorn.Server(_config(app, grace_s=2))
        self._thread = threading.Thread(target=self._run, name="groundrule-server", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + 30
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise ModelError("the local endpoint did not start; is the loopback interface up?")
            time.sleep(0.01)

    @property
    def base_url(self) -> str:
        return base_url_of(self._socket)

    def close(self) -> None:
        """Stop listening."""
        self._server.should_exit = True
        self._thread.join(timeout=5)
        self._socket.close()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])


def serve_until_stopped(
    app: Starlette, listener: socket.socket, *, grace_s: int, on_ready: Callable[[], None]
) -> None:
    """Answer until SIGTERM or SIGINT; running answers get `grace_s` seconds to finish. For the main thread."""
    server = _ReadyServer(_config(app, grace_s=grace_s), on_ready)
    # The server raises a caught signal once more after it has stopped; being told to stop is no failure.
    stops = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, server.handle_exit) for number in stops]
    try:
        server.run(sockets=[listener])
    finally:
        for number, handler in zip(stops, before, strict=True):
            signal.signal(number, handler)


def bound(host: str, port: int) -> socket.socket:
    """A socket at this address, 0 for any free port; `ModelError` when it cannot be had."""
    kind = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.ExitStack() as undo:
        listener = undo.enter_context(socket.socket(kind, socket.SOCK_STREAM))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError as error:
            raise ModelError(_cannot_bind(host, port, error)) from error
        undo.pop_all()
    return listener


def base_url_of(listener: socket.socket) -> str:
    """Where clients find the socket."""
    host, port = listener.getsockname()[:2]
    return f"http://{f'[{host}]' if ':' in host else host}:{port}/v1"


def is_loopback(host: str) -> bool:
    """True for addresses that only this machine can reach."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _ReadyServer(uvicorn.Server):
    """Says when it listens."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()


KEEP_ALIVE_S = 75
"""How long an idle connection stays open. Clients let go of theirs after 5 to 60 seconds; a server that does so at the
same moment breaks the request that a client is about to send on it, which must not be sent twice."""


def _config(app: Starlette, *, grace_s: int) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        log_level="warning",
        lifespan="off",
        loop="asyncio",
        http="h11",
        ws="none",
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=grace_s,
    )


def _cannot_bind(host: str, port: int, error: OSError) -> str:
    if error.errno == errno.EADDRINUSE:
        return f"port {port} on {host} is in use; name another with --port, or 0 for a free one"
    return f"cannot listen on {host} port {port}: {error.strerror or error}; check --host and --port"
