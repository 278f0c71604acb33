"""More to ask for than the system prompt says: a rubric in plain words, and nothing else changes.

    python examples/04_custom_rubric.py JUDGE

The rubric is read by judges that read instructions. The offline likelihood judge does not.
"""

import asyncio
import importlib
import sys

from groundrule.rewards import ruler_score_group

RUBRIC = """
- Short and clear answers come first
- Emojis and chatty language count against an answer
- An answer that says where it found its facts is better
"""


async def main(judge="openai/o3"):
    group = importlib.import_module("02_score_a_group").group_of_four()
    judged = await ruler_score_group(group, judge, rubric=RUBRIC)
    for trajectory in judged.trajectories:
        print(f"{trajectory.reward:.2f}  {trajectory.logs[-1]}")
    return judged


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:2]))
