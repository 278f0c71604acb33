"""Serve a model over HTTP until told to stop: check, take the port, load, answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from groundrule.errors import ConfigError


@dataclass(frozen=True)
class ServeSettings:
    """How a model is served."""

    host: str = "127.0.0.1"
    port: int = 8000
    """0 takes a free one."""
    name: str | None = None
    """What requests call the model; None: by the name it was given, a run's by the run's."""
    api_key: str | None = None
    max_rows: int = 64
    max_waiting: int = 1024
    context_tokens: int | None = None
    device: str | None = None
    grace_s: int = 30
    """Seconds that running answers get when the server is told to stop."""


def serve(model: str, settings: ServeSettings, *, report: Callable[[str], None]) -> None:
    """Answer until SIGTERM or SIGINT. `report` hears one line when the server is ready."""
    from groundrule.inference.server import base_url_of, bound, is_loopback, serve_until_stopped

    if settings.api_key is None and not is_loopback(settings.host):
        raise ConfigError(
            f"--host {settings.host} lets other machines in, which needs a key: set GROUNDRULE_API_KEY or give "
            "--api-key-file, or leave --host out"
        )
    # The port first: whether it is free is known at once, the model takes seconds.
    with bound(settings.host, settings.port) as listener:
        from groundrule.inference.app import Endpoint
        from groundrule.inference.engine import Engine
        from groundrule.recipes.served_model import load_served

        served = load_served(model, device=settings.device)
        name = settings.name or served.name
        engine = Engine(
            served.model,
            max_rows=settings.max_rows,
            max_waiting=settings.max_waiting,
            version=served.version,
        )
        endpoint = Endpoint(
            engine, lambda: [name], api_key=settings.api_key, context_tokens=settings.context_tokens
        )
        key = "with your key" if settings.api_key else "no key needed, this machine only"
        ready = f"serving {name} at {base_url_of(listener)} ({key}); stop with Ctrl-C"
        try:
            serve_until_stopped(
                endpoint.app(), listener, grace_s=settings.grace_s, on_ready=lambda: report(ready)
            )
        finally:
            engine.close()
