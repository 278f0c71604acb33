"""The simplest agent: one answer of the policy to one scenario."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from groundrule.data.protocols import Policy
from groundrule.data.scenario import Scenario
from groundrule.data.trajectory import Trajectory


@dataclass(frozen=True)
class AnswerOnce:
    """A `Rollout` that asks once through an OpenAI client and keeps the sampled `Choice`."""

    client: Any
    """An `AsyncOpenAI`, such as `model.openai_client()`."""
    max_tokens: int = 256
    temperature: float = 1.0
    top_p: float = 1.0
    system: str | None = None
    """Replaces the scenario's system prompt."""

    async def __call__(self, policy: Policy, scenario: Scenario) -> Trajectory:
        messages = scenario.messages(system=policy.system_prompt or self.system)
        reply = await self.client.chat.completions.create(
            model=policy.model,
            messages=messages,
            max_tokens=self.max_tokens,
            temperature=self.temperature,
            top_p=self.top_p,
            logprobs=True,
            **({} if policy.seed is None else {"seed": policy.seed}),
        )
        choice = reply.choices[0]
        trajectory = Trajectory(
            messages_and_choices=[*messages, choice],
            initial_policy_version=policy.version,
            final_policy_version=getattr(choice, "policy_version", None),
            metadata={"scenario_id": scenario.id},
        )
        trajectory.metrics["truncated"] = choice.finish_reason == "length"
        if reply.usage is not None:
            trajectory.metrics["completion_tokens"] = reply.usage.completion_tokens
        return trajectory
