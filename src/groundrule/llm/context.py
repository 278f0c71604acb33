"""How many tokens a model reads at once: known by family, guessed with care where it is not.

The figures are what the families' publishers name. A server may be set to less, and some cut what is too
long without a word, so whoever knows better says so (`num_ctx`, `max_model_len` in the parameters).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any

UNKNOWN_API_MODEL = 32_768
"""For a model that has a provider's name before it and a name of its own that says nothing."""

OLLAMA = 4_096
"""What an Ollama server loads a model with unless it is told otherwise, whatever the model could read."""

_STATED = ("num_ctx", "max_model_len", "context_length")
_FAMILIES: tuple[tuple[str, int], ...] = (
    (r"gpt-4\.1", 1_000_000),
    (r"gpt-5-chat", 128_000),
    (r"gpt-5", 272_000),
    (r"gpt-oss", 131_072),
    (r"gpt-4o|chatgpt-4o|gpt-4-turbo|gpt-4-(?:0125|1106)", 128_000),
    (r"gpt-4-32k", 32_768),
    (r"gpt-4", 8_192),
    (r"gpt-3\.5", 16_385),
    (r"o1-(?:mini|preview)", 128_000),
    (r"o[134]\b", 200_000),
    (r"claude", 200_000),
    (r"gemini", 1_000_000),
    (r"gemma-?2", 8_192),
    (r"gemma-?3n|gemma-?3-1b", 32_768),
    (r"gemma-?[34]", 131_072),
    (r"llama-?3\.[123]|llama-?4", 131_072),
    (r"llama-?3", 8_192),
    (r"llama-?2", 4_096),
    (r"qwen-?3.*(?:2507|next|coder)", 262_144),
    (r"qwen", 32_768),
    (r"deepseek", 64_000),
    (r"mistral-(?:large|medium|small|nemo)|ministral|magistral|devstral|codestral|pixtral", 128_000),
    (r"mistral|mixtral", 32_768),
    (r"phi-?4-mini|phi-?3\.5", 128_000),
    (r"phi-?4", 16_384),
    (r"phi-?3", 4_096),
    (r"command-(?:r|a)", 128_000),
    (r"grok", 131_072),
    (r"kimi|moonshot|glm-?4\.[5-9]|glm-?5", 128_000),
    (r"smollm-?3", 65_536),
    (r"smollm-?2", 8_192),
    (r"smollm", 2_048),
)
_BY_FAMILY = tuple((re.compile(rf"(?<![a-z0-9])(?:{family})"), tokens) for family, tokens in _FAMILIES)
_IN_THE_NAME = re.compile(r"(?<![a-z0-9.])(?:([0-9]{1,4})k|([124]|10)m)(?![a-z0-9])")


def context_of(model: str, params: Mapping[str, Any] | None = None, *, endpoint: str = "") -> int | None:
    """Tokens that prompt and reply may take together; None where nothing is known of the model.

    In this order: what `params` state, Ollama's small default (named by the model's prefix, or by its port
    in `endpoint`), a size in the name ("-128k"), the family, and for a model of a provider a cautious guess.
    A judge that is a function or a client without a known name has no context that one could know.
    """
    for name in _STATED:
        stated = (params or {}).get(name)
        if isinstance(stated, int) and not isinstance(stated, bool) and stated > 0:
            return stated
    name = model.lower()
    if name.startswith(("ollama/", "ollama_chat/")) or ":11434" in endpoint:
        return OLLAMA
    if (known := _by_name(name)) is not None:
        return known
    return UNKNOWN_API_MODEL if "/" in name or endpoint.startswith("http") else None


@functools.lru_cache(maxsize=256)
def _by_name(name: str) -> int | None:
    if size := _IN_THE_NAME.search(name):
        return int(size[1]) * 1_000 if size[1] else int(size[2]) * 1_000_000
    return next((tokens for family, tokens in _BY_FAMILY if family.search(name)), None)
