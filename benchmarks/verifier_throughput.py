"""How many verdicts a second the code and the math verifier give.

    python benchmarks/verifier_throughput.py [--programs 200] [--answers 1000] [--workers 2]

Code: each verdict is a candidate of its own, with three tests, half of the candidates wrong in the last one: so many
with calls, a quarter as many with each of the costlier forms. Start of an interpreter: the floor under all of them.
Math: answers in a box against their references, half of them wrong. Wrong verdicts are counted; there must be none.
"""

from __future__ import annotations

import argparse
import logging
import resource
import subprocess
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from _machine import publish, spread

from groundrule.data.score import Score
from groundrule.rewards.verifiers.code import verify_code
from groundrule.rewards.verifiers.sandbox import sandbox_tier


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--programs", type=int, default=200)
    parser.add_argument("--answers", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    tier = sandbox_tier()
    result: dict[str, Any] = {
        "workers": arguments.workers,
        "tier": str(tier).partition(";")[0],  # Without the place of this machine's interpreter.
        "interpreter_start_s": spread([start_of(tier.python) for _ in range(11)]),
    }
    few = max(1, arguments.programs // 4)
    forms = [
        ("calls", by_calls, arguments.programs),
        ("test_program", by_test_program, few),
        ("stdin", by_stdin, few),
    ]
    for form, verdict, count in forms:
        result[form] = measure(verdict, count, arguments.workers)
        print(form, result[form])
    result["math"] = math_verdicts(arguments.answers, arguments.workers)
    publish("verifier_throughput", result)


def by_calls(number: int) -> bool:
    tests = [{"fn": "f", "args": [k], "expected": k + number} for k in (1, 2, 3)]
    return is_right(verify_code(function(number), tests), number)


def by_test_program(number: int) -> bool:
    tests = f"step = {number}\n" + "\n".join(f"assert f({k}) == {k} + step" for k in (1, 2, 3))
    return is_right(verify_code(function(number), tests), number)


def by_stdin(number: int) -> bool:
    code = f"{function(number)}\nprint(f(int(input())))"
    tests = [{"stdin": f"{k}\n", "stdout": f"{k + number}\n"} for k in (1, 2, 3)]
    return is_right(verify_code(code, tests), number)


def function(number: int) -> str:
    """Right for even numbers; for odd ones wrong where x is 3."""
    return f"def f(x):\n    return x + {number} + ({number} % 2) * (x == 3)"


def is_right(score: Score, number: int) -> bool:
    return score.value == (1.0 if number % 2 == 0 else 0.0)


def measure(verdict: Callable[[int], bool], count: int, workers: int) -> dict[str, float]:
    """Verdicts a second, and processor time a verdict, here and in the processes that it started."""
    wall, cpu = time.perf_counter(), processor_s()
    with ThreadPoolExecutor(workers) as pool:
        right = list(pool.map(verdict, range(count)))
    wall, cpu = time.perf_counter() - wall, processor_s() - cpu
    return {
        "verdicts": count,
        "wrong_verdicts": right.count(False),
        "verdicts_per_s": round(count / wall, 1),
        "cpu_ms_per_verdict": round(1000 * cpu / count, 1),
    }


def math_verdicts(count: int, workers: int) -> dict[str, float] | None:
    """None where the math verifier cannot be had."""
    try:
        from groundrule.rewards.verifiers.math import verify_math

        verify_math(r"\boxed{1}", "1")
    except (ImportError, ValueError) as error:
        print(f"math left out: {error}")
        return None

    def verdict(number: int) -> bool:
        said = number if number % 2 == 0 else number + 1
        return is_right(
            verify_math(rf"So it is \boxed{{\frac{{{said}}}{{7}}}}.", rf"\frac{{{2 * number}}}{{14}}"), number
        )

    return measure(verdict, count, workers)


def start_of(python: str) -> float:
    """Seconds for an interpreter that does nothing."""
    began = time.perf_counter()
    subprocess.run([python, "-I", "-S", "-c", "pass"], check=True)
    return time.perf_counter() - began


def processor_s() -> float:
    """Seconds of this process and of all children that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


if __name__ == "__main__":
    main()
