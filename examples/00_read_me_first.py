"""The whole idea in one flat file: attempts, scores, advantages. No training, no network, two seconds.

    python examples/00_read_me_first.py

An agent answered the same question four times. Its system prompt says what a good answer is. A judge
reads the prompt and all four answers side by side and scores them. GRPO then asks of each answer only
this: how much better or worse is it than the group? That number, the advantage, is what every token
of the answer is pushed by in training.
"""

import asyncio
import json

from groundrule.algorithms.advantages import advantages
from groundrule.llm import ScriptedClient
from groundrule.rewards import ruler

SYSTEM = "You are a museum guide. Answer only from the retrieved context. Do not add anything to it."
QUESTION = (
    "[Retrieved context]: The museum is open from 10 to 18, on Thursdays until 21. Entry is free for "
    "visitors under 16.\n\nQuestion: How late can I come on a Thursday?"
)
ANSWERS = [
    "On Thursdays we are open until 21.",
    "Until 21 on Thursdays, and the café serves a late menu with live jazz.",
    "Opening hours differ. Please call us.",
    "We are glad that you ask! As the context says, on Thursdays the museum stays open until 21 o'clock.",
]


def careful_judge(messages: list[dict]) -> str:
    """Stands in for a real judge, so that this file needs no key. It gives scores by what it reads."""
    text = (
        messages[-1]["content"] if isinstance(messages[-1]["content"], str) else str(messages[-1]["content"])
    )
    known = {"jazz": 0.25, "Please call": 0.05, "glad": 0.9, "we are open": 1.0}
    order = sorted((text.index(phrase), score) for phrase, score in known.items())
    scores = [
        {"trajectory_id": str(i), "explanation": "scripted", "score": score}
        for i, (_, score) in enumerate(order, start=1)
    ]
    return json.dumps({"scores": scores})


async def main() -> list[float]:
    conversations = [
        [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": QUESTION},
            {"role": "assistant", "content": answer},
        ]
        for answer in ANSWERS
    ]
    judge = ScriptedClient(lambda request: careful_judge(list(request.messages)))
    scores = [s.score for s in await ruler(conversations, judge)]
    pushes = advantages(scores)
    for answer, score, push in zip(ANSWERS, scores, pushes, strict=True):
        print(f"score {score:.2f}  advantage {push:+.2f}  {answer}")
    return scores


if __name__ == "__main__":
    asyncio.run(main())
