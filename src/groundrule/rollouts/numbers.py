"""The built-in set "numbers": which of four numbers is the largest, or the smallest?

Made in code, with answers that a verifier can check. No four numbers of a held-out problem are those of a training
problem, in whatever order. `format_examples` shows how answers are written and nothing of how they are found: for a
warm-up that leaves the skill to be learned.
"""

from __future__ import annotations

import random
from itertools import islice

from groundrule._util.seed import derive
from groundrule.data.scenario import Scenario, Split

SYSTEM_PROMPT = "Answer with one number and nothing else, written inside \\boxed{}."
TRAIN, HELD_OUT = 512, 96
FORMAT_EXAMPLES = 48

_QUESTIONS = {
    "largest": (max, "Which of these numbers is the largest: {}?"),
    "smallest": (min, "Which of these numbers is the smallest: {}?"),
}
_GIVEN = (
    "Write the number {}.",
    "Repeat this number: {}",
    "I am thinking of {}. Which number am I thinking of?",
    "The result is {}. What is the result?",
)


def number_scenarios() -> list[Scenario]:
    """Training problems, then held-out ones; both kinds of question in turn."""
    rng = random.Random(derive("numbers"))
    seen: set[frozenset[int]] = set()
    drawn: list[list[int]] = []
    while len(drawn) < TRAIN + HELD_OUT:
        numbers = rng.sample(range(10, 100), 4)
        if frozenset(numbers) not in seen:
            seen.add(frozenset(numbers))
            drawn.append(numbers)
    return [_scenario(i, numbers) for i, numbers in enumerate(drawn)]


def _scenario(index: int, numbers: list[int]) -> Scenario:
    split: Split = "train" if index < TRAIN else "held-out"
    kind = list(_QUESTIONS)[index % 2]
    pick, question = _QUESTIONS[kind]
    return Scenario(
        id=f"{kind}-{index + 1}",
        system=SYSTEM_PROMPT,
        question=question.format(", ".join(map(str, numbers))),
        reference=str(pick(numbers)),
        split=split,
        metadata={"kind": kind},
    )


def format_examples(count: int = FORMAT_EXAMPLES) -> list[list[dict[str, str]]]:
    """Conversations in which a single given number is written as answers are to be written."""
    rng = random.Random(derive("numbers", "format"))
    numbers = (rng.randint(2, 199) for _ in range(count))
    return [
        [
            {"role": "system", "content": SYSTEM_PROMPT},
            {"role": "user", "content": rng.choice(_GIVEN).format(number)},
            {"role": "assistant", "content": f"\\boxed{{{number}}}"},
        ]
        for number in islice(numbers, count)
    ]
