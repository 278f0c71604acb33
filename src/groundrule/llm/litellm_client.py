"""Any model that the optional litellm package can reach, as `litellm/...`."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping
from importlib import metadata
from typing import Any

from groundrule.data.protocols import ChatReply, ChatRequest
from groundrule.errors import ConfigError, LlmError
from groundrule.llm.completion import reply_from

REFUSED_VERSIONS = {"1.82.7", "1.82.8", "1.107.0"}
"""Releases that carried malicious code."""


class LiteLlmClient:
    """A thin client around `litellm.acompletion`."""

    def __init__(self, connection: Mapping[str, Any]) -> None:
        check_version(installed_version())
        self._connection = {
            k: v for k, v in connection.items() if k in ("api_base", "base_url", "api_key", "timeout")
        }
        self.base_url = str(
            self._connection.get("api_base") or self._connection.get("base_url") or "litellm:"
        )

    async def complete(self, request: ChatRequest) -> ChatReply:
        """One call; litellm's own cache and retries stay off."""
        os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # Otherwise the import fetches a file.
        litellm: Any = importlib.import_module("litellm")

        try:
            completion = await litellm.acompletion(
                model=request.model,
                messages=list(request.messages),
                caching=False,
                num_retries=0,
                **self._connection,
                **request.params,
            )
        except Exception as error:
            raise LlmError(
                f"litellm/{request.model} gave no answer: {type(error).__name__}: {error}"
            ) from error
        return reply_from(completion.model_dump(), model=request.model)


def installed_version() -> str | None:
    """The installed litellm's version, without importing it."""
    try:
        return metadata.version("litellm")
    except metadata.PackageNotFoundError:
        return None


def check_version(version: str | None) -> None:
    """Refuse what is missing or compromised, before anything of it is imported."""
    if version is None:
        raise ConfigError("'litellm/...' needs the litellm package; pip install 'groundrule[litellm]'")
    if version in REFUSED_VERSIONS:
        raise ConfigError(
            f"litellm {version} carried malicious code and is not imported; uninstall it, "
            "change every key this machine knows, and pip install 'litellm>=1.108'"
        )
