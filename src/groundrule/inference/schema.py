"""The part of OpenAI's chat completions that the local endpoint speaks, as checked requests and plain replies."""

from __future__ import annotations

import time
import uuid
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from groundrule.inference.tool_calls import Parsed, parse_tool_calls
from groundrule.models.sampling import Sample, SamplingRequest

DEFAULT_MAX_TOKENS = 256

_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "stream": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "response_format": ({"type": "text"},),
    "tool_choice": ("auto", "none"),
}
"""Parameters that are not supported, with the values at which they change nothing."""


class ChatMessage(BaseModel):
    """One message; unknown keys are passed on to the chat template."""

    model_config = ConfigDict(extra="allow")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Any] | None = None


class ChatCompletionBody(BaseModel):
    """A request body. Parameters that would change the answer and are not supported are refused, not ignored."""

    model_config = ConfigDict(extra="allow")

    model: str
    messages: list[ChatMessage] = Field(min_length=1)
    tools: list[dict[str, Any]] | None = None
    n: int = Field(default=1, ge=1, le=128)
    temperature: float = Field(default=1.0, ge=0, le=2)
    top_p: float = Field(default=1.0, gt=0, le=1)
    top_k: int = Field(default=0, ge=-1)
    """0 and -1: all tokens."""
    min_p: float = Field(default=0.0, ge=0, le=1)
    presence_penalty: float = Field(default=0.0, ge=-2, le=2)
    frequency_penalty: float = Field(default=0.0, ge=-2, le=2)
    repetition_penalty: float = Field(default=1.0, gt=0)
    max_tokens: int | None = Field(default=None, ge=1)
    max_completion_tokens: int | None = Field(default=None, ge=1)
    stop: str | list[str] | None = None
    seed: int | None = None
    logprobs: bool | None = None
    """Accepted and needless: logprobs are always there."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        """A null is a parameter left out, as it is for OpenAI."""
        return {k: v for k, v in given.items() if v is not None} if isinstance(given, dict) else given

    @model_validator(mode="after")
    def _supported(self) -> ChatCompletionBody:
        for name, value in (self.model_extra or {}).items():
            if name in _NEUTRAL and value not in _NEUTRAL[name]:
                raise ValueError(f"'{name}' is not supported by this endpoint; leave it out")
        return self

    @property
    def offers_tools(self) -> bool:
        """Whether calls are looked for in the answer."""
        return bool(self.tools) and (self.model_extra or {}).get("tool_choice") != "none"

    @property
    def limit(self) -> int:
        """Most tokens to sample."""
        return self.max_completion_tokens or self.max_tokens or DEFAULT_MAX_TOKENS

    def sampling(self, prompt_ids: list[int], seed: int) -> SamplingRequest:
        """One answer of this request."""
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return SamplingRequest(
            prompt_ids=tuple(prompt_ids),
            max_tokens=self.limit,
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=max(0, self.top_k),
            min_p=self.min_p,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            repetition_penalty=self.repetition_penalty,
            stop=tuple(s for s in stops if s),
            seed=seed,
        )


def completion(
    body: ChatCompletionBody, prompt_ids: list[int], samples: list[Sample], tokenizer: Any, version: int
) -> dict[str, Any]:
    """The reply. Choices always carry token ids, the prompt's ids, logprobs and how they were sampled."""
    sampled = sum(len(s.token_ids) for s in samples)
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": body.model,
        "choices": [_choice(i, s, body, prompt_ids, tokenizer, version) for i, s in enumerate(samples)],
        "usage": {
            "prompt_tokens": len(prompt_ids),
            "completion_tokens": sampled,
            "total_tokens": len(prompt_ids) + sampled,
        },
    }


def _choice(
    index: int, sample: Sample, body: ChatCompletionBody, prompt_ids: list[int], tokenizer: Any, version: int
) -> dict[str, Any]:
    parsed = parse_tool_calls(sample.text, body.tools or []) if body.offers_tools else Parsed(sample.text, [])
    message: dict[str, Any] = {"role": "assistant", "content": parsed.content}
    if parsed.calls:
        message["tool_calls"] = [call.as_message_part() for call in parsed.calls]
    is_call = bool(parsed.calls) and sample.finish_reason == "stop"
    return {
        "index": index,
        "message": message,
        "finish_reason": "tool_calls" if is_call else sample.finish_reason,
        "logprobs": {"content": _logprobs(sample, tokenizer)},
        "token_ids": sample.token_ids,
        "prompt_token_ids": prompt_ids,
        "sampling": {"temperature": body.temperature, "top_p": body.top_p},
        "policy_version": version,
    }


def _logprobs(sample: Sample, tokenizer: Any) -> list[dict[str, Any]]:
    result = []
    for token_id, logprob in zip(sample.token_ids, sample.logprobs, strict=True):
        token = tokenizer.decode([token_id])
        result.append({"token": token, "logprob": logprob, "bytes": list(token.encode()), "top_logprobs": []})
    return result


def error_body(
    message: str, *, kind: str, param: str | None = None, code: str | None = None
) -> dict[str, Any]:
    """An error as OpenAI writes it."""
    return {"error": {"message": message, "type": kind, "param": param, "code": code}}
