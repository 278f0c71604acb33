"""A judge and a check in one reward: the address must be right, and the rest is the judge's business.

    python examples/05_hybrid_reward.py [JUDGE]

Both signals stay visible: the judge's in metrics["ruler_score"], the check's in metrics["address"].
"""

import asyncio
import importlib
import sys

from groundrule.rewards import ruler_score_group


def names_the_address(trajectory) -> float:
    return float("help@example.com" in trajectory.messages()[-1]["content"])


async def main(judge="local/likelihood"):
    group = importlib.import_module("02_score_a_group").group_of_four()
    judged = await ruler_score_group(group, judge)
    for trajectory in judged.trajectories:
        trajectory.metrics["address"] = names_the_address(trajectory)
        trajectory.reward += trajectory.metrics["address"]
        print(
            f"reward {trajectory.reward:.2f} = judge {trajectory.metrics['ruler_score']:.2f} "
            f"+ address {trajectory.metrics['address']:.0f}"
        )
    return judged


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:2]))
