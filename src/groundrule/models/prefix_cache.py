"""What has been read once is not read again: a radix tree of keys and values over token ids.

Every path from the root spells tokens that some prompt or answer began with. A new prompt takes the
longest path that it begins with and only the rest is computed (Zheng et al. 2023, "SGLang", section 3).
Least recently used leaves go first when the tree holds more than its share of memory.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count

import torch

from groundrule.models.key_values import KeyValues


@dataclass(eq=False)
class Node:
    """A run of tokens behind its parent's."""

    tokens: tuple[int, ...]
    kv: KeyValues | None
    parent: Node | None
    children: dict[int, Node] = field(default_factory=dict)
    hidden: torch.Tensor | None = None
    """(width,): the final hidden state of the last token, where the next token was once drawn from it."""
    used: int = 0


@dataclass(frozen=True)
class Match:
    """How much of a prompt is known."""

    parts: list[KeyValues]
    tokens: int
    hidden: torch.Tensor | None
    """Of the prompt's last token, when all of it is known."""


class PrefixCache:
    """A tree for one set of weights. Not safe for several threads; its engine is the only user."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._clock = count(1)
        self._root = Node((), None, None)

    def match(self, ids: tuple[int, ...]) -> Match:
        """The longest known beginning of `ids`.

        The last token is left out unless its hidden state is known too: something must be computed
        to draw the next token from.
        """
        node, parts, at = self._root, [], 0
        while at < len(ids) and (child := node.children.get(ids[at])) is not None:
            shared = _shared(child.tokens, ids, at)
            child.used = next(self._clock)
            at += shared
            parts.append(child.kv if shared == len(child.tokens) else _cut(child, 0, shared))
            node = child
            if shared < len(child.tokens):
                break
        known = [p for p in parts if p is not None]
        is_whole = at == len(ids) and bool(known) and known[-1].tokens == len(node.tokens)
        if is_whole and node.hidden is not None:
            return Match(known, at, node.hidden)
        if at == len(ids) and known:
            at -= 1
            last = known.pop()
            if last.tokens > 1:
                known.append(last.cut(0, last.tokens - 1))
        return Match(known, at, None)

    def insert(self, ids: tuple[int, ...], kv: KeyValues, hidden: torch.Tensor | None = None) -> None:
        """Keep what was computed of `ids`; `kv` holds its last `kv.tokens` tokens, the rest is in the tree."""
        start = len(ids) - kv.tokens
        node, at = self._root, 0
        while at < len(ids) and (child := node.children.get(ids[at])) is not None:
            shared = _shared(child.tokens, ids, at)
            if shared < len(child.tokens):
                self._split(child, shared)
                child = node.children[ids[at]]
            at += shared
            child.used = next(self._clock)
            node = child
        if at < start:
            return  # What it continues has been evicted meanwhile.
        if at < len(ids):
            node = self._add(node, ids[at:], kv.cut(at - start, kv.tokens))
        if hidden is not None:
            node.hidden = hidden
        self._shrink()

    def clear(self) -> None:
        """Forget everything: the weights have changed."""
        self._root, self.bytes = Node((), None, None), 0

    def _add(self, parent: Node, tokens: tuple[int, ...], kv: KeyValues) -> Node:
        node = Node(tokens, kv, parent, used=next(self._clock))
        parent.children[tokens[0]] = node
        self.bytes += kv.bytes
        return node

    def _split(self, node: Node, at: int) -> None:
        """Put a node of the first `at` tokens above this one."""
        head = Node(node.tokens[:at], _cut(node, 0, at), node.parent, used=node.used)
        if node.parent is not None:
            node.parent.children[node.tokens[0]] = head
        node.kv, node.tokens, node.parent = _cut(node, at, len(node.tokens)), node.tokens[at:], head
        head.children[node.tokens[0]] = node

    def _shrink(self) -> None:
        while (
            self.bytes > self.max_bytes and (leaf := min(self._leaves(), key=_age, default=None)) is not None
        ):
            if leaf.parent is None or leaf.kv is None:
                return
            self.bytes -= leaf.kv.bytes
            del leaf.parent.children[leaf.tokens[0]]

    def _leaves(self) -> list[Node]:
        waiting, leaves = list(self._root.children.values()), []
        while waiting:
            node = waiting.pop()
            waiting.extend(node.children.values())
            if not node.children:
                leaves.append(node)
        return leaves


def _age(node: Node) -> int:
    return node.used


def _shared(tokens: tuple[int, ...], ids: tuple[int, ...], at: int) -> int:
    """How many of these tokens `ids` goes on with at this place."""
    if ids[at : at + len(tokens)] == tokens:
        return len(tokens)
    return next(i for i, token in enumerate(tokens) if at + i >= len(ids) or ids[at + i] != token)


def _cut(node: Node, start: int, stop: int) -> KeyValues:
    assert node.kv is not None
    return node.kv.cut(start, stop)
