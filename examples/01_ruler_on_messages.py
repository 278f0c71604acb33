"""The lower level: `ruler` on plain message lists, without any object of this library.

    python examples/01_ruler_on_messages.py [JUDGE]

JUDGE is any judge by name, such as openai/o3 or ollama/qwen3:32b; the default needs no key.
"""

import asyncio
import sys

from groundrule.rewards import ruler

SYSTEM = "You are a support agent of an online shop. Use the retrieved context to answer accurately."
USER = (
    "How do I get my money back?\n\n"
    "[Retrieved context]: Money is returned within 30 days of the order. Downloads cannot be given back "
    "once opened. To begin, write to help@example.com."
)
ANSWERS = {
    "Faithful": "You get your money back within 30 days, except for opened downloads. Write to help@example.com.",
    "Invented": "Within 30 days, or as a shop credit for 90 days. Our hotline is open around the clock.",
    "Evasive": "I do not know how that works here. Someone in the accounts team may be able to tell you.",
}


async def main(judge="local/likelihood"):
    message_lists = [
        [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": USER},
            {"role": "assistant", "content": answer},
        ]
        for answer in ANSWERS.values()
    ]
    scores = await ruler(message_lists, judge)
    for label, score in zip(ANSWERS, scores, strict=True):
        print(f"{label}: {score.score:.2f}  {score.explanation}")
    return scores


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:2]))
