"""The part of OpenAI's chat completions that the endpoint speaks, as a checked request.

A parameter that would change the answer and is not known here is refused, not ignored.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from groundrule.inference.body_parts import ChatMessage, ResponseFormat, StreamOptions, Tool, ToolChoice
from groundrule.inference.errors import RequestError, place_of
from groundrule.models.sampling import Constraint, SamplingRequest

DEFAULT_MAX_TOKENS = 256
MOST_ANSWERS = 128
MOST_STOPS = 4

_NEUTRAL: dict[str, tuple[Any, ...]] = {
    "add_generation_prompt": (True,),
    "best_of": (1,),
    "chat_template_kwargs": ({},),
    "echo": (False,),
    "ignore_eos": (False,),
    "length_penalty": (1.0,),
    "min_tokens": (0,),
    "modalities": (["text"],),
    "skip_special_tokens": (True,),
    "use_beam_search": (False,),
    "verbosity": ("medium",),
}
"""Parameters of OpenAI or of other servers that are not supported, with the values at which they change nothing."""

_HARMLESS = frozenset(
    "metadata prediction prompt_cache_key prompt_cache_options prompt_cache_retention safety_identifier "
    "service_tier store user".split()
)
"""Parameters that never change an answer."""

_OLD_FORM = {"functions": "tools", "function_call": "tool_choice"}

Share = Annotated[float, Field(strict=True, ge=0, le=1)]
Penalty = Annotated[float, Field(strict=True, ge=-2, le=2)]
Count = Annotated[int, Field(strict=True, ge=1)]


class ChatCompletionBody(BaseModel):
    """A request body; a null is a parameter left out."""

    model_config = ConfigDict(extra="allow")

    model: str
    messages: list[ChatMessage] = Field(min_length=1)
    tools: list[Tool] | None = None
    tool_choice: Literal["auto", "none", "required"] | ToolChoice = "auto"
    parallel_tool_calls: bool = True
    response_format: ResponseFormat | None = None
    n: Annotated[int, Field(strict=True, ge=1, le=MOST_ANSWERS)] = 1
    temperature: Annotated[float, Field(strict=True, ge=0, le=2)] = 1.0
    top_p: Annotated[float, Field(strict=True, gt=0, le=1)] = 1.0
    top_k: Annotated[int, Field(strict=True, ge=-1)] = 0
    """0 and -1: all tokens."""
    min_p: Share = 0.0
    presence_penalty: Penalty = 0.0
    frequency_penalty: Penalty = 0.0
    repetition_penalty: Annotated[float, Field(strict=True, gt=0)] = 1.0
    logit_bias: dict[str, float] = Field(default_factory=dict)
    """Token ids, as text, to what is added to their logits: -100 to 100."""
    max_tokens: Count | None = None
    max_completion_tokens: Count | None = None
    stop: str | list[str] | None = None
    seed: Annotated[int, Field(strict=True)] | None = None
    logprobs: Annotated[bool, Field(strict=True)] | None = None
    """Accepted and needless: logprobs are always there."""
    top_logprobs: Annotated[int, Field(strict=True, ge=0, le=20)] = 0
    return_token_ids: Annotated[bool, Field(strict=True)] | None = None
    """Accepted and needless: token ids are always there."""
    stream: Annotated[bool, Field(strict=True)] = False
    stream_options: StreamOptions | None = None

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, given: Any) -> Any:
        return {k: v for k, v in given.items() if v is not None} if isinstance(given, dict) else given

    @field_validator("logit_bias")
    @classmethod
    def _biases(cls, given: dict[str, float]) -> dict[str, float]:
        for token, bias in given.items():
            if not token.isdecimal() or not -100 <= bias <= 100:
                raise ValueError(f"{token!r}: {bias} must be a token id and a number from -100 to 100")
        return given

    @field_validator("stop")
    @classmethod
    def _stops(cls, given: str | list[str] | None) -> str | list[str] | None:
        if isinstance(given, list) and len(given) > MOST_STOPS:
            raise ValueError(f"{len(given)} stop strings; at most {MOST_STOPS} are taken")
        return given

    @model_validator(mode="after")
    def _supported(self) -> ChatCompletionBody:
        for name, value in (self.model_extra or {}).items():
            if name in _HARMLESS or (name in _NEUTRAL and value in _NEUTRAL[name]):
                continue
            raise _Unsupported(name)
        names = {tool.function.name for tool in self.tools or []}
        wanted = self.tool_choice
        if isinstance(wanted, ToolChoice) and wanted.function.name not in names:
            raise _Misplaced("tool_choice", f"{wanted.function.name!r} is not among the tools")
        if wanted == "required" and not names:
            raise _Misplaced("tool_choice", "'required' needs tools")
        return self

    @property
    def offers_tools(self) -> bool:
        """Whether calls are looked for in the answer."""
        return bool(self.tools) and self.tool_choice != "none"

    @property
    def tool_dicts(self) -> list[dict[str, Any]]:
        """The tools as the chat template takes them."""
        return [tool.model_dump(exclude_none=True) for tool in self.tools or []]

    @property
    def asked_limit(self) -> int | None:
        """Most tokens to sample, where the request says so."""
        return self.max_completion_tokens or self.max_tokens

    def sampling(
        self,
        prompt_ids: list[int],
        seed: int,
        *,
        limit: int | None = None,
        constraint: Callable[[], Constraint] | None = None,
    ) -> SamplingRequest:
        """One answer of this request."""
        stops = [self.stop] if isinstance(self.stop, str) else self.stop or []
        return SamplingRequest(
            prompt_ids=tuple(prompt_ids),
            max_tokens=limit or self.asked_limit or DEFAULT_MAX_TOKENS,
            temperature=self.temperature,
            top_p=self.top_p,
            top_k=max(0, self.top_k),
            min_p=self.min_p,
            presence_penalty=self.presence_penalty,
            frequency_penalty=self.frequency_penalty,
            repetition_penalty=self.repetition_penalty,
            logit_bias=tuple((int(token), bias) for token, bias in self.logit_bias.items()),
            stop=tuple(s for s in stops if s),
            seed=seed,
            top_logprobs=self.top_logprobs,
            constraint=constraint,
        )


class _Misplaced(ValueError):
    """A fault of the whole request, with the parameter that it is about."""

    def __init__(self, param: str, message: str) -> None:
        super().__init__(message)
        self.param = param


class _Unsupported(_Misplaced):
    def __init__(self, name: str) -> None:
        known = difflib.get_close_matches(name, ChatCompletionBody.model_fields, n=1, cutoff=0.8)
        hint = f"did you mean '{known[0]}'?" if known else "leave it out"
        if name in _OLD_FORM:
            hint = f"send '{_OLD_FORM[name]}' in its place"
        super().__init__(name, f"'{name}' is not supported by this endpoint; {hint}")


def parse_body(raw: bytes) -> ChatCompletionBody:
    """The request in a body; raises `RequestError` with the first fault and its place."""
    try:
        return ChatCompletionBody.model_validate_json(raw)
    except ValidationError as error:
        raise first_fault(error) from error


def first_fault(error: ValidationError) -> RequestError:
    """What OpenAI would say of it."""
    fault = error.errors()[0]
    cause = fault.get("ctx", {}).get("error")
    message = str(fault["msg"]).removeprefix("Value error, ")
    if isinstance(cause, _Misplaced):
        code = "unsupported_parameter" if isinstance(cause, _Unsupported) else None
        text = message if code else f"{cause.param}: {message}"
        return RequestError(text, cause.param, code=code)
    # Names of the alternatives that were tried stand among the steps; they are no part of the body.
    steps = tuple(step for step in fault["loc"] if not _is_alternative(step))
    place = place_of(steps) or None
    return RequestError(f"{place}: {message}" if place else message, place)


def _is_alternative(step: int | str) -> bool:
    return isinstance(step, str) and (step in ("str", "ToolChoice") or "[" in step)
