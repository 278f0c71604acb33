"""The seams of the library: five small protocols, and nothing else.

The main path joins them: draw scenarios -> gather groups (`Rollout`) -> score them (`Scorer`) ->
update (`Learner`), where judges talk through a `ChatClient` and agents through a `Policy`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import Message
from groundrule.data.scenario import Scenario
from groundrule.data.score import Score
from groundrule.data.trajectory import Trajectory


@dataclass(frozen=True)
class Policy:
    """Where the current agent answers, and as whom."""

    base_url: str
    model: str
    version: int
    api_key: str = "local"
    system_prompt: str | None = None
    """Replaces the scenario's own system prompt; what a prompt learner changes."""
    seed: int | None = None
    """For sampling, where attempts are to draw the same random numbers; a rollout hands it to its endpoint."""


@dataclass(frozen=True)
class Update:
    """What a learner made of scored groups."""

    policy: Policy
    metrics: dict[str, float] = field(default_factory=dict)


class Rollout(Protocol):
    """One attempt at a scenario, written by the user around any agent framework."""

    async def __call__(self, policy: Policy, scenario: Scenario) -> Trajectory: ...


class Scorer(Protocol):
    """Turns a group into scores, one per member, in group order."""

    async def score(self, group: TrajectoryGroup) -> list[Score]: ...


class Learner(Protocol):
    """Turns scored groups into a better policy: LoRA weights, or the prompt itself."""

    async def update(self, groups: Sequence[TrajectoryGroup]) -> Update: ...


@dataclass(frozen=True)
class ChatRequest:
    """One call of a chat model."""

    model: str
    messages: tuple[Message, ...]
    params: dict[str, Any] = field(default_factory=dict)
    """Sampling parameters as the endpoint takes them; what is absent is left to the endpoint."""
    purpose: str = ""
    """For the cost ledger: `judge/ruler`, `rollout`, ..."""


@dataclass(frozen=True)
class Usage:
    """Tokens of one call as the endpoint counted them; None where it did not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None


TopLogprobs = tuple[tuple[tuple[str, float], ...], ...]
"""Of each token of an answer: the likeliest texts in its place, each with its log-probability."""


@dataclass(frozen=True)
class ChatReply:
    """What a chat model answered."""

    content: str | None
    finish_reason: str = "stop"
    refusal: str | None = None
    reasoning: str | None = None
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    """None: the price is unknown. 0.0 only where nothing is paid (a cache hit, a local model)."""
    cached: bool = False
    model: str = ""
    top_logprobs: TopLogprobs = ()
    """Empty where the request did not ask (`logprobs`, `top_logprobs` in its params), or the endpoint does not say."""


@runtime_checkable
class ChatClient(Protocol):
    """Talks to a chat model. Raises `LlmError` when there is no answer."""

    async def complete(self, request: ChatRequest) -> ChatReply: ...
