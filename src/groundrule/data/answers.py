"""The answers that are compared: an id, the messages, and perhaps a score."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from groundrule.data.messages import Message, images_of, key_of, message_of, text_of
from groundrule.errors import DataError

Finite = Annotated[float, Field(strict=True, allow_inf_nan=False)]


class Answer(BaseModel):
    """One of the answers that were compared: `Answer(text="...")` or `Answer(messages=[...])`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(default="", strict=True)
    """Names the answer in its ranking; by default it is made from the content."""
    messages: list[Message]
    """What came after the prompt: the agent's message, and the rest of the conversation if there was any."""
    score: Finite | None = None
    """What the source gave it, on the source's own scale."""

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, given: Any) -> Any:
        """Reads `text` as the one message that it stands for, and checks the messages."""
        if isinstance(given, Answer):
            return given
        fields = (
            {k: v for k, v in given.items() if v is not None}
            if isinstance(given, Mapping)
            else {"text": given}
        )
        if ("text" in fields) == ("messages" in fields):
            raise DataError("an answer has a 'text' or 'messages'; give one of them")
        fields["messages"] = answer_messages(fields.pop("text", fields.get("messages")))
        if fields.get("id", "") == "":
            fields["id"] = content_id(fields["messages"])
        elif type(fields["id"]) is int:
            fields["id"] = str(fields["id"])
        return fields

    @model_serializer(mode="wrap")
    def _as_text(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """A single plain message is written as its text."""
        record: dict[str, Any] = write(self)
        first = self.messages[0]
        if len(self.messages) > 1 or first.keys() != {"role", "content"} or type(first["content"]) is not str:
            return record
        return {"id": self.id, "text": first["content"], **{k: v for k, v in record.items() if k == "score"}}

    @property
    def text(self) -> str:
        """What the agent wrote; several messages are parted by a blank line."""
        said = [text_of(m.get("content")) for m in self.messages if m.get("role") == "assistant"]
        return "\n\n".join(text for text in said if text)

    @cached_property
    def key(self) -> str:
        """Equal exactly for answers that mean the same."""
        return key_of(self.messages)


_WRITE_A_MESSAGE = 'write {"role": ..., "content": ...}'


def conversation_of(value: Any) -> list[Message]:
    """A prompt: messages, or a text that becomes one user turn."""
    messages = [{"role": "user", "content": value}] if isinstance(value, str) else value
    conversation = _checked(messages, what="conversation")
    if not any(_says_something(m) for m in conversation):
        raise DataError("the prompt is empty; write what was answered")
    return conversation


def answer_messages(value: Any) -> list[Message]:
    """An answer: messages that begin with the agent's, one message, or a text that becomes one."""
    if isinstance(value, str):
        value = [{"role": "assistant", "content": value}]
    messages = _checked([value] if isinstance(value, Mapping) else value, what="answer")
    if messages[0]["role"] != "assistant":
        raise DataError(
            f"the answer begins with a message of role {messages[0]['role']!r}; an answer begins with the "
            "agent's message, and what stands before it belongs into 'prompt'"
        )
    if is_empty(messages):
        raise DataError("the answer is empty; write its text, or leave the answer out of the comparison")
    return messages


def is_empty(messages: Sequence[Message]) -> bool:
    """Whether the agent neither writes anything in them nor calls a tool."""
    return not any(m.get("role") == "assistant" and _says_something(m) for m in messages)


def _checked(messages: Any, *, what: str) -> list[Message]:
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes) or not messages:
        raise DataError(f"the {what} is {shown(messages)}; write a text, or a list of messages")
    for number, message in enumerate(messages, start=1):
        role = message.get("role") if isinstance(message, Mapping) else None
        if not isinstance(role, str) or not role:
            raise DataError(
                f"message {number} of the {what} is {shown(message)} and has no role; {_WRITE_A_MESSAGE}"
            )
        if not isinstance(message.get("content"), str | list | None):
            raise DataError(
                f"message {number} of the {what} has the content {shown(message['content'])}; {_WRITE_A_MESSAGE}"
            )
    return [message_of(message) for message in messages]


def _says_something(message: Mapping[str, Any]) -> bool:
    content = message.get("content")
    return bool(text_of(content).strip() or images_of(content) or message.get("tool_calls"))


def shown(value: Any) -> str:
    """A value as an error quotes it."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def content_id(messages: Sequence[Message]) -> str:
    """An id made from what the messages say: equal content, equal id, in every file and on every machine."""
    return hashlib.sha256(key_of(messages).encode("utf-8", "surrogatepass")).hexdigest()[:12]
