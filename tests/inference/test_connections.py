"""Connections that clients keep open between requests."""

from __future__ import annotations

import httpx
from starlette.applications import Starlette

from groundrule.inference.server import KEEP_ALIVE_S, _config


def test_an_idle_connection_is_closed_by_the_client_and_not_by_the_server() -> None:
    """At the same moment, a request on it would fail, and an answer would be missing from its group."""
    openai_keeps_s = httpx.Limits().keepalive_expiry
    assert openai_keeps_s == 5.0
    assert _config(Starlette(), grace_s=1).timeout_keep_alive == KEEP_ALIVE_S == 75
