"""In what order and how fast a trainer goes through its examples: the same for one seed, wherever it is taken up."""

from __future__ import annotations

import random


def shuffled_batches(count: int, size: int, *, epochs: int, seed: int | str) -> list[list[int]]:
    """Every index below `count` once an epoch, each epoch in another order; the last batch of one may be smaller."""
    batches = []
    for epoch in range(epochs):
        order = list(range(count))
        random.Random(f"{seed}/{epoch}").shuffle(order)
        batches += [order[start : start + size] for start in range(0, count, size)]
    return batches


def falling_rate(first: float, step: int, steps: int) -> float:
    """The learning rate of step 1, 2, ... of `steps`: along a line towards a tenth of the first."""
    return first * (1 - 0.9 * (step - 1) / steps)
