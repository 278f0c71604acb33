"""How much evidence the next test needs, so that a whole sequence of tests errs with probability alpha at most.

The fallback procedure (Wiens 2003; online by Tian and Ramdas 2021): every test has its own share of alpha, and a test
that rejects hands its level on to a later one. Whatever depends on what, the chance of even one false acceptance in the
sequence is at most alpha. The shares T / ((i + T)(i + T + 1)) of tests i = 0, 1, 2, ... add up to 1, however many tests
there are, and those of the first T to a half. Tests that go side by side are decided at once, so what they hand on goes
to the first one after them. Within a test the level is divided among its looks, so that it may stop at any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class ErrorBudget:
    """What is left of alpha for the tests to come."""

    alpha: float
    """The chance of a single false acceptance among all tests."""
    half: int
    """T: how many tests have half of alpha for themselves."""
    done: int = 0
    handed_on: float = 0.0
    """The levels of those of the last tests, side by side, that rejected their hypotheses."""

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha < 1.0:
            raise ValueError(f"alpha is {self.alpha}; it is a probability between 0 and 1")
        if self.half < 1:
            raise ValueError(f"half is {self.half}; plan for 1 test or more")

    @property
    def level(self) -> float:
        """Of the next test."""
        return self.levels(1)[0]

    def levels(self, tests: int) -> list[float]:
        """Of the next so many tests, side by side; what was handed on belongs to the first."""
        places = range(self.done + self.half, self.done + self.half + tests)
        shares = [self.alpha * self.half / (place * (place + 1)) for place in places]
        return [share + self.handed_on * (number == 0) for number, share in enumerate(shares)]

    def after(self, *accepted: bool) -> ErrorBudget:
        """The budget once the next tests, side by side, have been decided. Without any it stays as it is."""
        if not accepted:
            return self
        levels = self.levels(len(accepted))
        handed_on = sum(level for level, is_accepted in zip(levels, accepted, strict=True) if is_accepted)
        return replace(self, done=self.done + len(accepted), handed_on=handed_on)


def looks_of(level: float, looks: Sequence[int]) -> list[float]:
    """The part of a test's level for each look at its data, by how much of all data is new at it.

    `looks` are how many units have been seen at each, rising. The parts add up to the level, so the union bound holds.
    A look whose part no sign-flip test of so few units can reach, 2^-n at best, leaves it to the next one.
    """
    if not looks or any(b <= a for a, b in zip([0, *looks], looks, strict=False)):
        raise ValueError(f"looks are {list(looks)}; they are numbers of units that rise from above 0")
    parts: list[float] = []
    left = 0.0
    for before, now in zip([0, *looks], looks, strict=False):
        part = left + level * (now - before) / looks[-1]
        is_out_of_reach = part < 2.0**-now and now != looks[-1]
        parts.append(0.0 if is_out_of_reach else part)
        left = part if is_out_of_reach else 0.0
    return parts
