"""The program of `gather_score.py`: the same for both libraries but for the name that is imported.

    python benchmarks/_gather_program.py groundrule|art PORT GROUPS [--steps]

Reads lines and answers each as `_child.serve` says. Every run gathers and scores groups that no earlier run had.
With `--steps` a run is a training: steps of 25 groups, each of which the program drops when its step is over.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import itertools
import sys
from typing import Any

from _child import resident_mb, serve
from _stub_judge import MEMBERS, SCORES

STEP_GROUPS = 25

SYSTEM = "You are the support agent of a bookshop. Answer from the passage only, in one sentence."


def conversation(number: int, member: int) -> list[dict[str, Any]]:
    passage = f"Shelf {number} holds atlases; they go back within {number % 60} days."
    asked = f"[Retrieved context]: {passage}\n\nQuestion: How long?"
    answer = f"Answer {member}: an atlas from shelf {number} may go back within {member + 20} days."
    return [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": asked},
        {"role": "assistant", "content": answer},
    ]


class Program:
    """Gathers groups and has each scored as soon as it is complete."""

    def __init__(self, library: str, port: str) -> None:
        self.library = importlib.import_module(library)
        self.ruler_score_group = importlib.import_module(f"{library}.rewards").ruler_score_group
        self.connection = {"api_base": f"http://127.0.0.1:{port}/v1", "api_key": "none"}
        self.numbers = itertools.count()

    async def rollout(self, number: int, member: int) -> Any:
        return self.library.Trajectory(messages_and_choices=conversation(number, member), reward=0.0)

    async def judged(self, group: Any) -> Any:
        return await self.ruler_score_group(group, "openai/stub", self.connection)

    async def gathered(self, groups: int) -> list[Any]:
        return await self.library.gather_trajectory_groups(
            (
                self.library.TrajectoryGroup(self.rollout(number, member) for member in range(MEMBERS))
                for number in itertools.islice(self.numbers, groups)
            ),
            after_each=self.judged,
        )

    async def scored(self, groups: int) -> int:
        """Gather; how many trajectories have the reward that the judge gave."""
        found = await self.gathered(groups)
        right = [sorted(t.reward for t in group.trajectories) == SCORES for group in found]
        if len(found) != groups or not all(right):
            raise SystemExit(f"{len(found)} of {groups} groups came back, {sum(right)} with all their scores")
        return MEMBERS * len(found)

    async def in_steps(self, groups: int) -> list[tuple[int, float]]:
        """Gather step by step; after each, how many trajectories there were and the memory that is in use."""
        found: list[tuple[int, float]] = []
        for begun in range(0, groups, STEP_GROUPS):
            await self.scored(STEP_GROUPS)
            gc.collect()
            found.append(((begun + STEP_GROUPS) * MEMBERS, resident_mb()))
        return found


def main() -> None:
    library, port, groups = sys.argv[1], sys.argv[2], int(sys.argv[3])
    steps = "--steps" in sys.argv

    def load() -> Any:
        program = Program(library, port)
        # One loop for all runs: litellm keeps its client for the loop that it was first used in.
        runner = asyncio.Runner()
        if steps:
            return lambda: {"resident_mb": runner.run(program.in_steps(groups))}
        return lambda: {"trajectories": runner.run(program.scored(groups))}

    serve(load)


if __name__ == "__main__":
    main()
