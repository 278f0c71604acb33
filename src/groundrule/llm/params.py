"""Which parameters a model's endpoint takes, known by family or learnt from its refusals."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_REASONING = re.compile(r"(?:.*/)?(?:o[134](?:-|$)|gpt-5)(?!-chat)", re.IGNORECASE)
_MULTIMODAL = re.compile(
    r"(?:.*/)?(?:gpt-4o|gpt-4\.1|gpt-5|o1$|o3(?:-pro)?(?:-\d|$)|o4-mini|claude-|gemini-|pixtral|llava)|.*[-_.]?vl\b",
    re.IGNORECASE,
)
_SAMPLING = (
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "logprobs",
    "top_logprobs",
    "logit_bias",
)
_REFUSAL = re.compile(
    r"not support|unsupported|unavailable|unrecognized|unknown|not permitted|not allowed|not available|"
    r"deprecated|extra inputs|does not exist",
    re.IGNORECASE,
)
_REFUSAL_CODES = {"unsupported_parameter", "unsupported_value", "unknown_parameter"}
_TOGETHER = {"logprobs": "top_logprobs", "top_logprobs": "logprobs"}
"""Neither says anything without the other."""
_RENAMED = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}


def is_reasoning_model(model: str) -> bool:
    """True for OpenAI's o-series and gpt-5, which choose their own sampling."""
    return _REASONING.match(model) is not None


def takes_images(model: str) -> bool:
    """True for model families that are known to read image parts."""
    return _MULTIMODAL.match(model) is not None


def fitted(model: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters as this model's family takes them."""
    result = dict(params)
    if is_reasoning_model(model):
        for name in _SAMPLING:
            result.pop(name, None)
        if "max_tokens" in result:
            result.setdefault("max_completion_tokens", result.pop("max_tokens"))
    return result


def refused_param(params: Mapping[str, Any], message: str, code: str | None, named: str | None) -> str | None:
    """The one parameter of ours that a 400 answer refuses to know; None when the fault is another."""
    if code not in _REFUSAL_CODES and not _REFUSAL.search(message):
        return None
    words = re.findall(r"[A-Za-z_]+", re.sub(r"response format|json_schema", "response_format", message))
    candidates = [(named or "").split(".")[0], *words]
    return next((name for name in candidates if name in params), None)


def adapted(params: Mapping[str, Any], refused: Mapping[str, None]) -> dict[str, Any]:
    """The parameters without the refused ones; a token limit is renamed instead of dropped."""
    result = dict(params)
    for name in refused:
        if name in result:
            value = result.pop(name)
            result.pop(_TOGETHER.get(name, ""), None)
            other = _RENAMED.get(name)
            if other is not None and other not in refused:
                result[other] = value
    return result
