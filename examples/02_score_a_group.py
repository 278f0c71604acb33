"""The higher level: trajectories, a group, and `ruler_score_group`, as a training loop uses them.

python examples/02_score_a_group.py [JUDGE]
"""

import asyncio
import sys

from openai.types.chat import ChatCompletionMessage
from openai.types.chat.chat_completion import Choice

import groundrule as art
from groundrule.rewards import ruler_score_group

SYSTEM = {
    "role": "system",
    "content": (
        "You are a support agent of an online shop. Answer using ONLY the retrieved context. "
        "Do not add information that it does not hold."
    ),
}
USER = {
    "role": "user",
    "content": (
        "How do I get my money back?\n\n"
        "[Retrieved context]: Money is returned within 30 days of the order. Downloads cannot be given back "
        "once opened. To begin, write to help@example.com."
    ),
}
RESPONSES = [
    "You get your money back within 30 days, except for opened downloads. Write to help@example.com.",
    "Within 30 days, or as a shop credit for 90 days. Our hotline is open around the clock.",
    "I do not know how that works here. Someone in the accounts team may be able to tell you.",
    "According to what I have been given, money is returned within 30 days of the order. Please bear in mind "
    "that downloads cannot be given back after they were opened. If you would like to begin, you would have "
    "to write to help@example.com.",
]


def group_of_four() -> art.TrajectoryGroup:
    return art.TrajectoryGroup(
        art.Trajectory(
            messages_and_choices=[
                SYSTEM,
                USER,
                Choice(
                    finish_reason="stop",
                    index=0,
                    message=ChatCompletionMessage(role="assistant", content=response),
                ),
            ],
            reward=0.0,
        )
        for response in RESPONSES
    )


async def main(judge="local/likelihood"):
    judged = await ruler_score_group(group_of_four(), judge, debug=True)
    ranked = sorted(judged.trajectories, key=lambda t: t.reward, reverse=True)
    for rank, trajectory in enumerate(ranked, start=1):
        print(f"{rank}. {trajectory.reward:.3f}  {trajectory.messages()[-1]['content'][:70]}")
    return judged


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:2]))
