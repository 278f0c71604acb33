"""In which order a judge is shown a group, pass by pass, and how a large group is split into calls.

Judges favour places, most often the first, and most of all between near-equal items. An order and its
reverse cancel any effect that is linear over the places. A group too large for one call is split anew each
time, so that items meet others and the calls can be joined by whom they share.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence

from groundrule.errors import ConfigError

Chunks = list[list[int]]
"""The calls of one reading of the group: items by number, in the order shown in each call."""

_DRAWS = 8


def orders(n: int, passes: int, *, rng: random.Random) -> list[list[int]]:
    """One order of the items 0..n-1 a pass: random, its reverse, random, its reverse, ..."""
    drawn: list[list[int]] = []
    for number in range(passes):
        drawn.append(drawn[-1][::-1] if number % 2 else rng.sample(range(n), n))
    return drawn


def partitions(n: int, count: int, *, most: int = 8, rng: random.Random) -> list[Chunks]:
    """`count` splits of the items 0..n-1 into calls of `most` items or fewer, sizes within one of each other.

    Every second split is a new one in which each item stands at the mirror image of its last place, as near
    as calls of unequal size allow. Over all splits the items are connected: from any one to any other there
    is a chain of items that were shown together. Up to `most` items make single calls, as in `orders`.
    """
    if most < 2:
        raise ConfigError(f"most is {most}, but a judge compares the items of a call and needs at least 2")
    if n <= most:
        return [[order] for order in orders(n, count, rng=rng)]
    if count < 2:
        raise ConfigError(
            f"count is {count}, but {n} items do not fit into one call of {most}; read them in at least 2 "
            f"partitions, or raise most to {n}"
        )
    for _ in range(_DRAWS):
        drawn = _draw(n, count, most, rng)
        if is_connected(n, _flat(drawn)):
            return drawn
    drawn[-1] = _bridge(drawn[0], drawn[-2])
    return drawn


def is_connected(n: int, chunks: Iterable[Sequence[int]]) -> bool:
    """Whether a chain of items shown together leads from each of the items 0..n-1 to every other."""
    root = list(range(n))

    def find(item: int) -> int:
        while root[item] != item:
            root[item] = root[root[item]]
            item = root[item]
        return item

    for chunk in chunks:
        for item in chunk[1:]:
            root[find(item)] = find(chunk[0])
    return len({find(item) for item in range(n)}) <= 1


def _draw(n: int, count: int, most: int, rng: random.Random) -> list[Chunks]:
    drawn: list[Chunks] = []
    for number in range(count):
        order = _latest_first(drawn[-1], rng) if number % 2 else rng.sample(range(n), n)
        drawn.append(_dealt(order, -(-n // most), rng))
    return drawn


def _dealt(order: Sequence[int], calls: int, rng: random.Random) -> Chunks:
    """Place by place: the first items of `order` get the first place of the calls, at random among them."""
    chunks: Chunks = [[] for _ in range(calls)]
    for start in range(0, len(order), calls):
        row = list(order[start : start + calls])
        rng.shuffle(row)
        for chunk, item in zip(chunks, row, strict=False):  # The last row may be short.
            chunk.append(item)
    return chunks


def _latest_first(chunks: Chunks, rng: random.Random) -> list[int]:
    """The items by their place in their call, last places first, equal places in random order."""
    place = _places(chunks)
    return sorted(rng.sample(list(place), len(place)), key=lambda item: -place[item])


def _places(chunks: Chunks) -> dict[int, float]:
    """How far down its call each item stands: 0 first, 1 last."""
    return {item: at / max(len(chunk) - 1, 1) for chunk in chunks for at, item in enumerate(chunk)}


def _bridge(first: Chunks, previous: Chunks) -> Chunks:
    """A split that connects the items together with `first` alone.

    The calls of `first` laid end to end in a ring and cut one item later: each new call holds the end of one
    old call and the beginning of the next.
    """
    ring = [item for chunk in first for item in chunk]
    ring = ring[1:] + ring[:1]
    place = _places(previous)
    chunks: Chunks = []
    for size in map(len, first):
        taken, ring = ring[:size], ring[size:]
        chunks.append(sorted(taken, key=lambda item: -place[item]))
    return chunks


def _flat(drawn: Sequence[Chunks]) -> Chunks:
    return [chunk for chunks in drawn for chunk in chunks]
