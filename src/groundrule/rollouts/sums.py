"""The built-in set "sums": additions of two numbers, of which one at least has two digits.

Made in code, with answers that a verifier can check. No pair of a held-out problem is that of a training problem, in
whatever order. `one_digit_sums` is for a warm-up: it shows how a sum is written, on numbers that no problem has.
"""

from __future__ import annotations

import random
from itertools import product

from groundrule._util.seed import derive
from groundrule.data.scenario import Scenario, Split

SYSTEM_PROMPT = "Write the calculation and put its result inside \\boxed{}."
SMALL, LARGE = range(2, 31), range(10, 31)
"""What the two numbers are drawn from; either may come first."""
HELD_OUT = 96
WARM_UP_EXAMPLES = 40


def sum_scenarios() -> list[Scenario]:
    """Training problems, then held-out ones."""
    pairs = sorted({(min(a, b), max(a, b)) for a, b in product(SMALL, LARGE)})
    rng = random.Random(derive("sums"))
    rng.shuffle(pairs)
    problems = [pair if rng.random() < 0.5 else pair[::-1] for pair in pairs]
    return [
        *(_scenario(a, b, "train") for a, b in problems[HELD_OUT:]),
        *(_scenario(a, b, "held-out") for a, b in problems[:HELD_OUT]),
    ]


def one_digit_sums(count: int = WARM_UP_EXAMPLES, *, seed: int = 0) -> list[list[dict[str, str]]]:
    """Conversations in which two numbers of one digit are added in the form that is asked for."""
    rng = random.Random(derive("sums", "warm-up", seed))
    pairs = [(rng.randint(1, 9), rng.randint(1, 9)) for _ in range(count)]
    return [
        [
            {"role": "system", "content": SYSTEM_PROMPT},
            {"role": "user", "content": _question(a, b)},
            {"role": "assistant", "content": f"{a} + {b} = \\boxed{{{a + b}}}"},
        ]
        for a, b in pairs
    ]


def _scenario(a: int, b: int, split: Split) -> Scenario:
    return Scenario(
        id=f"{a}+{b}",
        system=SYSTEM_PROMPT,
        question=_question(a, b),
        reference=str(a + b),
        split=split,
    )


def _question(a: int, b: int) -> str:
    return f"What is {a} plus {b}?"
