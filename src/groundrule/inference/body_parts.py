"""The objects inside a request body: messages, tools, the form of the answer."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

_FUNCTION_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")


class ChatMessage(BaseModel):
    """One message; unknown keys are passed on to the chat template."""

    model_config = ConfigDict(extra="allow")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: Any = None
    tool_calls: list[Any] | None = None


class OfferedFunction(BaseModel):
    """What the model may call."""

    model_config = ConfigDict(extra="allow")

    name: str
    parameters: dict[str, Any] | None = None
    strict: bool | None = None

    @field_validator("name")
    @classmethod
    def _plain(cls, name: str) -> str:
        if not _FUNCTION_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no function name: 1 to 64 letters, digits, '_', '.' and '-'")
        return name


class Tool(BaseModel):
    """A function on offer."""

    model_config = ConfigDict(extra="allow")

    type: Literal["function"]
    function: OfferedFunction


class JsonSchema(BaseModel):
    """A schema that the answer must follow. It is enforced whether `strict` says so or not."""

    model_config = ConfigDict(populate_by_name=True)

    name: str = "answer"
    schema_: dict[str, Any] = Field(alias="schema")
    strict: bool | None = None


class ResponseFormat(BaseModel):
    """What kind of text the answer must be."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None

    @model_validator(mode="after")
    def _complete(self) -> ResponseFormat:
        if self.type == "json_schema" and self.json_schema is None:
            raise ValueError("the type 'json_schema' needs 'json_schema' with a schema")
        return self


class ChosenFunction(BaseModel):
    """The name in a tool choice."""

    name: str


class ToolChoice(BaseModel):
    """The one function that must be called."""

    type: Literal["function"]
    function: ChosenFunction


class StreamOptions(BaseModel):
    """What a stream carries beside its chunks."""

    include_usage: bool = False
    include_obfuscation: bool | None = None
    """Accepted; nothing is padded."""
