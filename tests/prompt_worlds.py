"""The simulated world of prompt learning under names: `judge_named("world", "prompt_worlds:named")`.

`world/agent` answers, `world/judge` scores, `world/writer` writes lessons; all of the world with seed 3.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from groundrule._util import jsonl
from groundrule.data.messages import text_of
from groundrule.data.protocols import ChatReply, ChatRequest, Policy
from groundrule.prompt_learning.reflection import Reflector
from groundrule.prompt_learning.simulated import SimulatedAgent, SimulatedJudge, SimulatedWriter, World
from groundrule.rewards.judges import Judge

WORLD = World(seed=3)


class AgentByName:
    """The simulated agent as a chat model."""

    base_url = "simulated:"

    def __init__(self) -> None:
        self.agent = SimulatedAgent(WORLD)

    async def complete(self, request: ChatRequest) -> ChatReply:
        system, question = (text_of(message["content"]) for message in request.messages)
        scenario = next(task for task in WORLD.tasks if task.question == question)
        policy = Policy("", request.model, 0, system_prompt=system, seed=request.params.get("seed"))
        answer = await self.agent(policy, scenario)
        return ChatReply(text_of(answer.messages()[-1]["content"]), cost_usd=0.0)


def named(name: str, params: dict[str, Any]) -> Any:
    """By the rest of the name."""
    makers = {
        "agent": AgentByName,
        "judge": lambda: SimulatedJudge(WORLD),
        "writer": lambda: SimulatedWriter(WORLD),
    }
    return makers[name]()


def reflector(seed: int = 0) -> Reflector:
    """A writer of this world."""
    return Reflector([Judge(SimulatedWriter(WORLD, seed=seed), "simulated")])


def write_tasks(path: Path, *, train: int = 28) -> Path:
    """The tasks of the world as a scenario file."""
    rows = [
        {
            "id": task.id,
            "system": task.system,
            "question": task.question,
            "split": "train" if number < train else "held-out",
        }
        for number, task in enumerate(WORLD.tasks)
    ]
    jsonl.write(path, rows)
    return path


def quality_of(answer: str) -> float:
    """What is hidden in an answer."""
    return float(json.loads(answer)["quality"])
