"""Which members of a group are compared with each other."""

from __future__ import annotations

import random

WHOLE = 6
"""Up to so many members everyone meets everyone: 15 pairs at most."""
OPPONENTS = 4
"""In a larger group everyone meets so many others: twice as many pairs as members."""


def pairings(members: int, rng: random.Random) -> list[tuple[int, int]]:
    """The pairs of members 0..n-1, each in the order in which it is shown first.

    The members stand in a ring drawn at random, and each is paired with those that follow it. So all are in equally
    many pairs, equally often (but for one) as the first of the two, and nobody is cut off from the others.
    """
    ring = rng.sample(range(members), members)
    reach = (members - 1) // 2 if members <= WHOLE else OPPONENTS // 2
    pairs = [(ring[i], ring[(i + step) % members]) for step in range(1, reach + 1) for i in range(members)]
    if members <= WHOLE and members % 2 == 0:
        pairs += [(ring[i], ring[i + members // 2]) for i in range(members // 2)]
    return pairs


def count_of(members: int) -> int:
    """How many pairs that are."""
    return members * (members - 1) // 2 if members <= WHOLE else members * OPPONENTS // 2
