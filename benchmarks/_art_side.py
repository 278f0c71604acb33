"""Runs in ART's own environment: its RULER over the shared cases, and token counts of given prompts.

Reads nothing; prints one JSON object. litellm's `acompletion` is replaced where ART's module holds it.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from pathlib import Path
from typing import Any

import art
import litellm
from _ruler_cases import CASES, Case, judge, token_groups

ruler = importlib.import_module("art.rewards.ruler")


def text_of(messages: list[dict[str, Any]]) -> str:
    return "\n".join(
        m["content"] if isinstance(m["content"], str) else json.dumps(m["content"]) for m in messages
    )


def answering(case: Case, seen: list[str]) -> Any:
    """An `acompletion` that replies as the case says."""

    async def acompletion(*, messages: list[dict[str, Any]], **_: Any) -> Any:
        seen.append(text_of(messages))
        reply = judge(case, messages[-1]["content"], len(seen) - 1)
        message = {"role": "assistant", "content": reply["content"], "refusal": reply["refusal"]}
        choices = [{"index": 0, "finish_reason": reply["finish_reason"], "message": message}]
        return litellm.ModelResponse(choices=choices, model="scripted")

    return acompletion


def group_of(case: Case) -> Any:
    more = [art.trajectories.History(messages_and_choices=case.members[0])] if "further" in case.name else []
    return art.TrajectoryGroup(
        [
            art.Trajectory(messages_and_choices=list(m), reward=0.0, additional_histories=more)
            for m in case.members
        ]
    )


async def outcome(case: Case) -> dict[str, Any]:
    seen: list[str] = []
    ruler.acompletion = answering(case, seen)
    try:
        judged = await ruler.ruler_score_group(group_of(case), "openai/scripted")
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"[:160]}
    return {"rewards": [repr(t.reward) for t in judged.trajectories]}


async def prompt_of(members: list[list[dict[str, Any]]]) -> str:
    seen: list[str] = []
    ruler.acompletion = answering(Case("tokens", members=members), seen)
    group = art.TrajectoryGroup([art.Trajectory(messages_and_choices=m, reward=0.0) for m in members])
    await ruler.ruler_score_group(group, "openai/scripted")
    return seen[0]


def count(text: str) -> int:
    return litellm.token_counter(model="gpt-4o", text=text)


def main() -> None:
    ours = json.loads(Path(sys.argv[1]).read_text("utf-8"))
    outcomes = {case.name: asyncio.run(outcome(case)) for case in CASES}
    theirs = {name: count(asyncio.run(prompt_of(members))) for name, members in token_groups().items()}
    print(
        json.dumps({"outcomes": outcomes, "theirs": theirs, "ours": {k: count(v) for k, v in ours.items()}})
    )


if __name__ == "__main__":
    main()
