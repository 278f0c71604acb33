"""Runs the endpoint on 127.0.0.1 in a thread of its own, beside the user's program."""

from __future__ import annotations

import socket
import threading
import time

import uvicorn
from starlette.applications import Starlette

from groundrule.errors import ModelError


class LocalServer:
    """Listens on a free loopback port from construction until `close`."""

    def __init__(self, app: Starlette) -> None:
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._server = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=2, ws="none")
        )
        self._thread = threading.Thread(target=self._run, name="groundrule-server", daemon=True)
        self._thread.start()
        deadline = time.monotonic() + 30
        while not self._server.started:
            if time.monotonic() > deadline or not self._thread.is_alive():
                raise ModelError("the local endpoint did not start; is the loopback interface up?")
            time.sleep(0.01)

    @property
    def base_url(self) -> str:
        port = self._socket.getsockname()[1]
        return f"http://127.0.0.1:{port}/v1"

    def close(self) -> None:
        """Stop listening."""
        self._server.should_exit = True
        self._thread.join(timeout=5)
        self._socket.close()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])
