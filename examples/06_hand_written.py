"""The same four answers under a reward written by hand and under a judge, side by side.

    python examples/06_hand_written.py JUDGE

The hand-written one counts words and figures: uses the context 0.4, claims nothing beyond it 0.3, complete 0.2,
short 0.1. Tighten the system prompt and its scores stay as they are; a judge that reads has another criterion.
"""

import asyncio
import importlib
import sys

from groundrule.rewards import ruler_score_group
from groundrule.rewards.handwritten import RagReward, RagWeights

WEIGHTS = RagWeights(uses_context=0.4, no_unsupported_claims=0.3, complete=0.2, concise=0.1)


async def main(judge="openai/o3"):
    group = importlib.import_module("02_score_a_group").group_of_four()
    by_hand = await RagReward(WEIGHTS).score(group)
    judged = await ruler_score_group(group, judge)
    print("by hand  judge")
    for counted, trajectory in zip(by_hand, judged.trajectories, strict=True):
        answer = trajectory.messages()[-1]["content"]
        print(f"{counted.value:7.2f}  {trajectory.reward:5.2f}  {answer[:70]}")
        print(f"                {counted.explanation}")
    return by_hand, judged


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:2]))
