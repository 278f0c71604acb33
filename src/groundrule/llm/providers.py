"""From a judge's or model's name to a client that talks to it.

`provider/model` names use the table below, `http://host:port/v1#model` any OpenAI-compatible server,
`litellm/...` the optional litellm package, and prefixes from `registry` whatever is registered there.
A key goes only to the provider whose environment variable holds it.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from groundrule.data.protocols import ChatClient, Scorer
from groundrule.errors import ConfigError
from groundrule.llm import registry
from groundrule.llm.adapters import CallableClient
from groundrule.llm.metered import MeteredClient
from groundrule.llm.openai_client import OpenAIClient

JudgeLike = str | ChatClient | Callable[..., Any]
"""A name, a chat client, or a function that answers messages."""


@dataclass(frozen=True)
class Provider:
    """An OpenAI-compatible endpoint."""

    base_url: str
    key_variable: str
    url_variable: str = ""
    """An environment variable that replaces `base_url`."""
    needs_key: bool = True
    is_free: bool = False
    """Runs on the user's own machine; nothing is paid per token."""


PROVIDERS = {
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "anthropic": Provider("https://api.anthropic.com/v1/", "ANTHROPIC_API_KEY"),
    "gemini": Provider("https://generativelanguage.googleapis.com/v1beta/openai/", "GEMINI_API_KEY"),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "together_ai": Provider("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "together": Provider("https://api.together.xyz/v1", "TOGETHER_API_KEY"),
    "deepseek": Provider("https://api.deepseek.com/v1", "DEEPSEEK_API_KEY"),
    "groq": Provider("https://api.groq.com/openai/v1", "GROQ_API_KEY"),
    "mistral": Provider("https://api.mistral.ai/v1", "MISTRAL_API_KEY"),
    "fireworks_ai": Provider("https://api.fireworks.ai/inference/v1", "FIREWORKS_API_KEY"),
    "xai": Provider("https://api.x.ai/v1", "XAI_API_KEY"),
    "ollama": Provider(
        "http://localhost:11434/v1", "OLLAMA_API_KEY", "OLLAMA_API_BASE", needs_key=False, is_free=True
    ),
    "hosted_vllm": Provider(
        "http://localhost:8000/v1", "HOSTED_VLLM_API_KEY", "HOSTED_VLLM_API_BASE", needs_key=False
    ),
}

_CONNECTION = {"api_base", "base_url", "api_key", "timeout", "num_retries", "max_retries", "caching"}


def resolve(
    judge: JudgeLike, extra_params: Mapping[str, Any] | None = None
) -> tuple[ChatClient, str] | Scorer:
    """A metered client and the model's name there; or a scorer, for registered names that are one.

    Of `extra_params` only those about the connection are used here (`api_base` or `base_url`, `api_key`,
    `timeout`, `num_retries`); `request_params` gives the others.
    """
    extra = dict(extra_params or {})
    if not isinstance(judge, str):
        client = _metered(judge)
        model = str(getattr(judge, "model", "") or "")
        if not model and isinstance(client.client, OpenAIClient):
            raise ConfigError(
                "the OpenAIClient given as a judge names no model; make it OpenAIClient(model=...)"
            )
        return client, model or _name_of(judge)
    if judge.startswith(("http://", "https://")):
        base_url, _, model = judge.partition("#")
        if not model:
            raise ConfigError(f"{judge!r} names no model; write it behind a #, as in {judge}#my-model")
        # Keys from the environment stay with their own provider.
        own = _openai_client(base_url, extra, Provider(base_url, "", needs_key=False))
        return MeteredClient(own), model
    if registry.is_registered(judge):
        made = registry.make(judge, extra)
        return made if hasattr(made, "score") else (_metered(made), judge.partition("/")[2])
    prefix, _, model = judge.partition("/")
    if prefix == "litellm" and model:
        from groundrule.llm.litellm_client import LiteLlmClient

        return MeteredClient(LiteLlmClient(extra)), model
    if prefix not in PROVIDERS or not model:
        raise ConfigError(_unknown(judge))
    return _provided(prefix, model, extra)


def resolve_client(judge: JudgeLike, extra_params: Mapping[str, Any] | None = None) -> tuple[ChatClient, str]:
    """A metered client and the model's name there; see `resolve`."""
    found = resolve(judge, extra_params)
    if isinstance(found, tuple):
        return found
    raise ConfigError(f"{judge!r} scores groups and cannot chat; name a chat model, such as 'openai/gpt-4.1'")


def request_params(extra_params: Mapping[str, Any] | None) -> dict[str, Any]:
    """The parameters that belong into the request."""
    return {key: value for key, value in (extra_params or {}).items() if key not in _CONNECTION}


def named_client(client: ChatClient, name: str) -> tuple[ChatClient, str]:
    """A client of the user's own under a judge's name: "openai/o3" asks it for "o3", at OpenAI's price."""
    prefix, _, model = name.partition("/")
    if prefix not in PROVIDERS or not model:
        return _metered(client), name
    return (client if isinstance(client, MeteredClient) else MeteredClient(client, provider=prefix)), model


def _metered(judge: Any) -> MeteredClient:
    if isinstance(judge, MeteredClient):
        return judge
    if isinstance(judge, ChatClient):
        return MeteredClient(judge)
    if callable(judge):
        return MeteredClient(CallableClient(judge))
    raise ConfigError(
        f"{type(judge).__name__} is no judge: it takes a name, a ChatClient or an async function"
    )


def _name_of(judge: Any) -> str:
    return str(getattr(judge, "__qualname__", type(judge).__name__))


def _provided(prefix: str, model: str, extra: dict[str, Any]) -> tuple[ChatClient, str]:
    provider = PROVIDERS[prefix]
    client = _openai_client(extra.get("api_base") or extra.get("base_url"), extra, provider)
    client.check_key()
    return MeteredClient(client, provider=prefix, is_free=provider.is_free), model


def _openai_client(base_url: str | None, extra: Mapping[str, Any], provider: Provider) -> OpenAIClient:
    return _shared_client(
        provider, base_url, extra.get("api_key"), extra.get("timeout"), extra.get("num_retries")
    )


@functools.lru_cache(maxsize=64)
def _shared_client(
    provider: Provider, base_url: str | None, key: str | None, timeout_s: float | None, retries: int | None
) -> OpenAIClient:
    """One client for all who ask the same: it remembers which parameters an endpoint refused."""
    return OpenAIClient(
        base_url=base_url,
        api_key=key,
        timeout_s=timeout_s,
        attempts=None if retries is None else 1 + retries,
        key_variable=provider.key_variable,
        url_variable=provider.url_variable,
        default_url=provider.base_url,
        needs_key=provider.needs_key,
    )


def _unknown(name: str) -> str:
    known = sorted({*PROVIDERS, *registry.registered_prefixes(), "litellm"})
    prefix = name.partition("/")[0]
    near = difflib.get_close_matches(prefix, known, n=1, cutoff=0.6)
    if "/" not in name:
        hint = f"write the provider before it, as in 'openai/{name}'"
    elif near:
        hint = f"did you mean {near[0]}/{name.partition('/')[2]}?"
    else:
        hint = f"a model on your own server is 'hosted_vllm/{name}' or 'http://host:port/v1#{name}'"
    return f"no provider is known for {name!r}; {hint} Known are {', '.join(known)}."
