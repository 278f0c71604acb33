"""How fast stored judgements come back: groups scored a second from a warm cache.

    python benchmarks/judge_throughput.py [--groups 10000] [--size 8] [--processes 2]

Every process scores its share of the groups, a second time in the measured run, through one SQLite cache that
all of them use. Nothing is sent anywhere: the scripted judge answers once, and the measured run must not ask it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from _machine import publish

from groundrule.data import Trajectory, TrajectoryGroup
from groundrule.llm import ReplyCache, ScriptedClient
from groundrule.rewards import Ruler

SYSTEM = "You are the support agent of a bookshop. Answer from the passage only, in one sentence."


def group_of(number: int, size: int) -> TrajectoryGroup:
    passage = f"Shelf {number} holds atlases; they go back within {number % 60} days."
    asked = f"[Retrieved context]: {passage}\n\nQuestion: How long?"
    opening = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": asked}]
    answers = [
        f"Answer {k}: an atlas from shelf {number} may go back within {k + 20} days." for k in range(size)
    ]
    return TrajectoryGroup(
        [Trajectory(messages_and_choices=[*opening, {"role": "assistant", "content": a}]) for a in answers]
    )


def verdict(size: int) -> str:
    scores = [
        {"trajectory_id": str(k + 1), "explanation": "as asked", "score": k / size} for k in range(size)
    ]
    return json.dumps({"scores": scores})


async def score_all(numbers: range, size: int, path: Path) -> dict[str, Any]:
    """Seconds for these groups and how often the judge was asked."""
    client = ScriptedClient(lambda request: verdict(size))
    ruler = Ruler(client, cache=ReplyCache(path))
    limit = asyncio.Semaphore(16)

    async def one(group: TrajectoryGroup) -> bool:
        async with limit:
            return all(score.value is not None for score in await ruler.score(group))

    groups = [group_of(number, size) for number in numbers]
    wall, cpu = time.perf_counter(), time.process_time()
    scored = await asyncio.gather(*(one(group) for group in groups))
    return {
        "scored": sum(scored),
        "asked": len(client.requests),
        "wall_s": time.perf_counter() - wall,
        "cpu_s": time.process_time() - cpu,
    }


def work(numbers: range, size: int, path: Path) -> dict[str, Any]:
    return asyncio.run(score_all(numbers, size, path))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--groups", type=int, default=10_000)
    parser.add_argument("--size", type=int, default=8)
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    shares = [range(i, arguments.groups, arguments.processes) for i in range(arguments.processes)]
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(arguments.processes) as pool:
        path = Path(folder) / "replies.sqlite"
        jobs = [(share, arguments.size, path) for share in shares]
        cold = [f.result() for f in [pool.submit(work, *job) for job in jobs]]
        warm = [f.result() for f in [pool.submit(work, *job) for job in jobs]]
    if any(w["asked"] for w in warm) or sum(w["scored"] for w in warm) != arguments.groups:
        raise SystemExit(f"the cache was not warm, or groups were lost: {warm}")
    slowest = max(w["wall_s"] for w in warm)
    publish(
        "judge_throughput",
        {
            "groups": arguments.groups,
            "size": arguments.size,
            "processes": arguments.processes,
            "groups_per_s": round(arguments.groups / slowest, 1),
            "cpu_ms_per_group": round(1000 * sum(w["cpu_s"] for w in warm) / arguments.groups, 3),
            "cold_groups_per_s": round(arguments.groups / max(c["wall_s"] for c in cold), 1),
        },
    )


if __name__ == "__main__":
    main()
