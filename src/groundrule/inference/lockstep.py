"""Lockstep: in which rounds the requests of a training step are answered, whatever the timing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Protocol


class Waiting(Protocol):
    """A job that waits."""

    slot: int | None


class Lockstep:
    """A number of rollouts, each with a slot. A round begins when every slot that is still open waits."""

    def __init__(self, slots: int) -> None:
        self._open = set(range(slots))
        self._turns: Counter[int] = Counter()
        self.rounds = 0
        """Rounds that have begun."""

    def close(self, slot: int) -> None:
        """This rollout will ask no more."""
        self._open.discard(slot)

    def next_turn(self, slot: int) -> int:
        """How many requests this slot made before this one."""
        self._turns[slot] += 1
        return self._turns[slot] - 1

    def complete(self, jobs: Iterable[Waiting]) -> bool:
        """Whether nobody is missing. A job without a slot stands for one that is, or both would wait forever."""
        waiting = list({id(job): job for job in jobs}.values())
        missing = self._open - {job.slot for job in waiting if job.slot is not None}
        return bool(waiting) and len(missing) <= sum(job.slot is None for job in waiting)
