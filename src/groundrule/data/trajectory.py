"""Trajectory: one attempt of the agent at a scenario."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer

from groundrule._util.digest import digest
from groundrule.data.messages import Message, Tools, is_choice, message_of

Scalar = float | int | str | bool | None
PROMPT = "prompt"
"""In a trajectory's metadata: the `digest` of the system prompt that it answered under."""


def _read_item(item: Any) -> Any:
    """Dicts written from a Choice become Choice objects again; everything else stays as it is."""
    if is_choice(item):
        return item
    if isinstance(item, Mapping):
        if "message" in item and "finish_reason" in item:
            from openai.types.chat.chat_completion import Choice

            return Choice.model_validate(dict(item))
        if "role" in item:
            return dict(item)
    raise ValueError(
        f"messages_and_choices holds {type(item).__name__} {str(item)[:80]!r}; "
        'it takes {"role": ..., "content": ...} dicts and OpenAI Choice objects'
    )


def _write_item(item: Any) -> Any:
    return item.model_dump(mode="json", exclude_unset=True) if is_choice(item) else item


MessageOrChoice = Annotated[Any, BeforeValidator(_read_item), PlainSerializer(_write_item)]
MessagesAndChoices = list[MessageOrChoice]


class History(BaseModel):
    """A further conversation of the same attempt: a sub-agent, or the time before a compaction."""

    model_config = ConfigDict(extra="allow")

    messages_and_choices: MessagesAndChoices = Field(default_factory=list)
    tools: Tools | None = None

    def messages(self) -> list[Message]:
        """All turns as plain messages."""
        return [message_of(item) for item in self.messages_and_choices]


@dataclass(frozen=True)
class Transition:
    """One step of the agent: in `state` it did `action`, got `reward` and met `next_state`."""

    state: list[Message]
    action: Message
    reward: float
    next_state: list[Message]


class Trajectory(BaseModel):
    """The messages of one attempt, what was sampled in it, and what it was worth.

    A `Choice` with token ids and logprobs is trainable; plain dict messages are context.
    Unknown fields are kept. `reward` stays a float; `unscored` holds the reason when the reward
    means nothing, and the trainer leaves such a trajectory out.
    """

    model_config = ConfigDict(extra="allow")

    messages_and_choices: MessagesAndChoices = Field(default_factory=list)
    tools: Tools | None = None
    additional_histories: list[History] = Field(default_factory=list)
    reward: float = 0.0
    unscored: str | None = None
    initial_policy_version: int | None = None
    final_policy_version: int | None = None
    metrics: dict[str, float | int | bool] = Field(default_factory=dict)
    metadata: dict[str, Scalar] = Field(default_factory=dict)
    logs: list[str] = Field(default_factory=list)
    start_time: datetime = Field(default_factory=lambda: datetime.now(UTC), exclude=True)

    def __eq__(self, other: object) -> bool:
        """Equal content; the moment of creation does not count."""
        if type(self) is not type(other) or not isinstance(other, Trajectory):
            return NotImplemented
        return self.model_dump() == other.model_dump()

    def messages(self) -> list[Message]:
        """All turns as plain messages; a Choice becomes its assistant message."""
        return [message_of(item) for item in self.messages_and_choices]

    def conversations(self) -> list[MessagesAndChoices]:
        """The main conversation, then the further ones of the same attempt."""
        return [self.messages_and_choices, *(h.messages_and_choices for h in self.additional_histories)]

    def log(self, message: str) -> None:
        """Keep a remark with the attempt."""
        self.logs.append(message)

    def finish(self) -> Trajectory:
        """Note the seconds since creation as `metrics["duration"]`."""
        elapsed = datetime.now(UTC) - self.start_time
        self.metrics["duration"] = elapsed.total_seconds()
        return self

    @contextlib.asynccontextmanager
    async def track_duration(self, name: str) -> AsyncIterator[None]:
        """Note the seconds spent in the block as `metrics["<name>_duration"]`, adding up over uses."""
        started = time.perf_counter()
        try:
            yield
        finally:
            key = f"{name}_duration"
            self.metrics[key] = self.metrics.get(key, 0.0) + time.perf_counter() - started

    def for_logging(self) -> dict[str, Any]:
        """A JSON-ready view with plain messages, for people and log files."""
        record = self.model_dump(mode="json", exclude={"messages_and_choices", "additional_histories"})
        record["messages"] = self.messages()
        return record

    def noting_prompt(self, prompt: str) -> Self:
        """A copy that notes in its metadata, by a hash, which system prompt it was given under."""
        return self.model_copy(update={"metadata": {**self.metadata, PROMPT: digest(prompt)}})

    def is_under(self, prompt: str) -> bool:
        """Whether it notes this system prompt."""
        return self.metadata.get(PROMPT) == digest(prompt)

    def transitions(self) -> list[Transition]:
        """The (state, action, reward, next state) steps of the main conversation.

        An action is an assistant turn, its state all messages before it; the next state also holds
        the action and what the environment answered, up to the next action. The reward of an
        attempt comes at its end, so every step but the last has 0.0.
        """
        turns = self.messages()
        actions = [i for i, turn in enumerate(turns) if turn.get("role") == "assistant"]
        ends = [*actions[1:], len(turns)] if actions else []
        return [
            Transition(
                state=turns[:start],
                action=turns[start],
                reward=self.reward if end == len(turns) and start == actions[-1] else 0.0,
                next_state=turns[:end],
            )
            for start, end in zip(actions, ends, strict=True)
        ]
