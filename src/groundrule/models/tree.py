"""Sequences that begin alike as a tree of tokens: what several share is one node and is computed once.

A node is a run of tokens without a branch. Only what is needed is in the tree: a sequence is read up to the
token before its last scored one, because nothing asks what comes after. A scored token belongs to the node
whose last hidden state predicts it, so all answers to one prompt start in the prompt's node; the same token
scored at the same place for several sequences is one logprob.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Path:
    """One sequence, and the places in `ids` (ascending, none of them 0) whose logprobs are wanted."""

    ids: tuple[int, ...]
    scored: tuple[int, ...]
    temperature: float = 1.0

    @property
    def read(self) -> tuple[int, ...]:
        """The tokens that have to pass through the model."""
        return self.ids[: self.scored[-1]] if self.scored else ()


@dataclass(frozen=True)
class Wanted:
    """One logprob: of `token`, by the hidden state at position `place` of its sequence."""

    index: int
    place: int
    token: int
    temperature: float


@dataclass(frozen=True)
class Node:
    """A run of tokens that some paths share, from position `start` on."""

    start: int
    ids: tuple[int, ...]
    wanted: tuple[Wanted, ...]
    """Logprobs that this node's hidden states give."""
    ends: tuple[int, ...]
    """Paths whose last read token is this node's last."""
    children: tuple[Node, ...]
    size: int
    """Tokens of this node and all nodes below it."""


@dataclass(frozen=True)
class TokenTree:
    """All paths of a pass; `rows[i]` are the indices of path i's logprobs, in order."""

    roots: tuple[Node, ...]
    rows: tuple[tuple[int, ...], ...]
    wanted: int
    """How many different logprobs there are."""
    all_tokens: int
    """What one pass per path would read."""

    @property
    def unique_tokens(self) -> int:
        """What passes through the model."""
        return sum(root.size for root in self.roots)


def token_tree(paths: Sequence[Path], *, share: bool = True) -> TokenTree:
    """The tree of these paths; without `share` every path is a tree of its own.

    Raises `ValueError` for a path whose first token is scored: nothing predicts it.
    """
    for i, path in enumerate(paths):
        if path.scored and path.scored[0] == 0:
            raise ValueError(f"path {i} scores its first token, which nothing predicts: its prompt is empty")
    builder = _Builder(paths)
    apart = [[i] for i in range(len(paths))]
    parts = [list(range(len(paths)))] if share else apart
    roots = tuple(node for members in parts for node in builder.nodes(members, 0))
    rows = tuple(map(tuple, builder.rows))
    return TokenTree(roots, rows, builder.wanted, sum(map(len, builder.read)))


class _Builder:
    def __init__(self, paths: Sequence[Path]) -> None:
        self.paths = paths
        self.read = [path.read for path in paths]
        self.rows: list[list[int]] = [[] for _ in paths]
        self.wanted = 0

    def nodes(self, members: list[int], start: int) -> list[Node]:
        """What follows position `start` in these paths, which are alike before it."""
        by_token: dict[int, list[int]] = {}
        for i in members:
            if len(self.read[i]) > start:
                by_token.setdefault(self.read[i][start], []).append(i)
        return [self._node(alike, start) for alike in by_token.values()]

    def _node(self, members: list[int], start: int) -> Node:
        end = _common_length([self.read[i] for i in members])
        wanted = self._scored(members, start, end)
        children = tuple(self.nodes(members, end))
        return Node(
            start=start,
            ids=self.read[members[0]][start:end],
            wanted=wanted,
            ends=tuple(i for i in members if len(self.read[i]) == end),
            children=children,
            size=end - start + sum(child.size for child in children),
        )

    def _scored(self, members: list[int], start: int, end: int) -> tuple[Wanted, ...]:
        found: dict[tuple[int, int, float], Wanted] = {}
        for i in members:
            path = self.paths[i]
            for at in path.scored[bisect_right(path.scored, start) : bisect_right(path.scored, end)]:
                key = (at - 1, path.ids[at], path.temperature)
                if key not in found:
                    found[key] = Wanted(self.wanted, *key)
                    self.wanted += 1
                self.rows[i].append(found[key].index)
        return tuple(found.values())


def _common_length(rows: Sequence[tuple[int, ...]]) -> int:
    """How many tokens all rows begin with."""
    first, last = min(rows), max(rows)
    shorter = min(len(first), len(last))
    return next((i for i in range(shorter) if first[i] != last[i]), shorter)
