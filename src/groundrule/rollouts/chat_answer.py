"""One answer of any chat model to one scenario, for agents whose weights are not trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from groundrule.data.protocols import ChatClient, ChatRequest, Policy
from groundrule.data.scenario import Scenario
from groundrule.data.trajectory import Trajectory
from groundrule.errors import LlmError

PURPOSE = "rollout"


@dataclass(frozen=True)
class ChatAnswer:
    """A `Rollout` that asks a `ChatClient` once."""

    client: ChatClient
    model: str
    params: Mapping[str, Any] = field(default_factory=dict)
    """As the endpoint takes them: `temperature`, `max_tokens`, ..."""

    async def __call__(self, policy: Policy, scenario: Scenario) -> Trajectory:
        """Raises `LlmError` where the model says nothing at all."""
        messages = scenario.messages(system=policy.system_prompt)
        seed = {} if policy.seed is None else {"seed": policy.seed}
        reply = await self.client.complete(
            ChatRequest(self.model, tuple(messages), {**self.params, **seed}, purpose=PURPOSE)
        )
        said = reply.content or reply.refusal
        if not said:
            raise LlmError(f"{self.model} gave an empty answer (finish reason {reply.finish_reason})")
        trajectory = Trajectory(
            messages_and_choices=[*messages, {"role": "assistant", "content": said}],
            initial_policy_version=policy.version,
            metadata={"scenario_id": scenario.id},
        )
        trajectory.metrics["truncated"] = reply.finish_reason == "length"
        if reply.usage.completion_tokens is not None:
            trajectory.metrics["completion_tokens"] = reply.usage.completion_tokens
        return trajectory
