"""Which small tasks leave the embedded model something to learn by a verifier alone: pass@1 and pass@16 as it begins.

    python benchmarks/rlvr_tasks.py [--quick]

A task is fit for reinforcement learning when single answers are mostly wrong and some of sixteen is right: what is
never right gives no signal, and what is always right gives none either. Every task is tried after every warm-up:
`none` (its own words, the last number counts), `numbers` (48 examples that write a given number), `small sums` (40
sums of one digit). 8 problems of each, 16 answers at temperature 1; the problems of this script are no held-out ones.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Callable
from typing import Any

from _machine import publish

from groundrule.algorithms.pass_at_k import pass_at_k
from groundrule.data.trajectory import Trajectory
from groundrule.models.generate import generate
from groundrule.models.load import LanguageModel, load_model
from groundrule.models.sampling import SamplingRequest
from groundrule.models.snapshot import snapshot
from groundrule.rollouts.sums import SYSTEM_PROMPT, one_digit_sums
from groundrule.training.sft import SftSettings, SftTrainer

PROBLEMS, ATTEMPTS = 8, 16
Problem = tuple[str, int]


def _two(rng: random.Random, low: int, high: int) -> tuple[int, int]:
    return rng.randint(low, high), rng.randint(low, high)


def plus(rng: random.Random) -> Problem:
    a, b = _two(rng, 10, 30)
    return f"What is {a} plus {b}?", a + b


def large_plus(rng: random.Random) -> Problem:
    a, b = _two(rng, 31, 99)
    return f"What is {a} plus {b}?", a + b


def minus(rng: random.Random) -> Problem:
    b, a = sorted(_two(rng, 2, 30))
    return f"What is {a} minus {b}?", a - b


def times(rng: random.Random) -> Problem:
    a, b = _two(rng, 2, 12)
    return f"What is {a} times {b}?", a * b


def largest(rng: random.Random) -> Problem:
    numbers = rng.sample(range(10, 100), 4)
    return f"Which of these numbers is the largest: {', '.join(map(str, numbers))}?", max(numbers)


def smallest(rng: random.Random) -> Problem:
    numbers = rng.sample(range(10, 100), 4)
    return f"Which of these numbers is the smallest: {', '.join(map(str, numbers))}?", min(numbers)


def next_number(rng: random.Random) -> Problem:
    first, step = rng.randint(1, 40), rng.randint(2, 10)
    shown = ", ".join(str(first + step * i) for i in range(4))
    return f"What number comes next: {shown}?", first + 4 * step


def apples(rng: random.Random) -> Problem:
    a, b = _two(rng, 2, 12)
    return f"Ada has {a} apples and buys {b} more. How many apples does she have now?", a + b


TASKS: dict[str, Callable[[random.Random], Problem]] = {
    "sums, 10 to 30": plus,
    "sums, 31 to 99": large_plus,
    "differences, 2 to 30": minus,
    "products, 2 to 12": times,
    "largest of four": largest,
    "smallest of four": smallest,
    "next of a sequence": next_number,
    "sums in words": apples,
}


def written_numbers() -> list[list[dict[str, str]]]:
    rng = random.Random(0)
    given = [rng.randint(2, 199) for _ in range(48)]
    return [
        [*asked(f"Write the number {n}."), {"role": "assistant", "content": f"\\boxed{{{n}}}"}] for n in given
    ]


def asked(question: str) -> list[dict[str, str]]:
    return [{"role": "system", "content": SYSTEM_PROMPT}, {"role": "user", "content": question}]


def warmed(examples: list[list[dict[str, str]]]) -> LanguageModel:
    model = load_model("smollm2-135m", device="cpu")
    if examples:
        trainer = SftTrainer(model, SftSettings(learning_rate=5e-4))
        for _ in trainer.fit([Trajectory(messages_and_choices=messages) for messages in examples]):
            pass
    return model


def is_right(answer: str, expected: int, *, boxed: bool) -> bool:
    found = re.findall(r"\\boxed\{(-?\d+)\}" if boxed else r"-?\d+", answer)
    return bool(found) and int(found[-1]) == expected


def rates(
    model: LanguageModel, task: Callable[[random.Random], Problem], *, boxed: bool, problems: int
) -> dict[str, Any]:
    rng = random.Random(1)
    chosen = [task(rng) for _ in range(problems)]
    requests = [
        SamplingRequest(tuple(model.renderer.prompt_ids(asked(question))), 24, seed=100 * i + k)
        for i, (question, _) in enumerate(chosen)
        for k in range(ATTEMPTS)
    ]
    answers = iter(generate(snapshot(model), requests))
    right = [
        sum(is_right(next(answers).text, expected, boxed=boxed) for _ in range(ATTEMPTS))
        for _, expected in chosen
    ]
    return {
        f"pass@{k}": round(sum(pass_at_k(ATTEMPTS, r, k) for r in right) / problems, 3) for k in (1, ATTEMPTS)
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="2 problems of each")
    problems = 2 if parser.parse_args().quick else PROBLEMS
    warm_ups = {"none": [], "numbers": written_numbers(), "small sums": one_digit_sums()}
    found: dict[str, dict[str, Any]] = {}
    for name, examples in warm_ups.items():
        model = warmed(examples)
        found[name] = {}
        for task, make in TASKS.items():
            found[name][task] = rates(model, make, boxed=bool(examples), problems=problems)
            print(f"{name}, {task}: {found[name][task]}", file=sys.stderr)
    publish("rlvr_tasks", {"problems": problems, "attempts": ATTEMPTS, "warm_ups": found})


if __name__ == "__main__":
    main()
