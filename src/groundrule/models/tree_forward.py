"""One forward pass over a piece of a token tree, given what was computed on the way to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import torch

from groundrule.models.chosen import chosen_logprobs
from groundrule.models.heap import give_back_idle_memory
from groundrule.models.load import LanguageModel
from groundrule.models.tree import Node, Wanted
from groundrule.models.tree_attention import Block, tree_attention

Readout = Callable[[torch.Tensor, Sequence[Wanted]], torch.Tensor]
"""What is wanted of hidden states (wanted, width): one number each, (wanted,)."""


@dataclass
class Past:
    """What the nodes above have computed, from the root on."""

    keys: list[torch.Tensor] = field(default_factory=list)
    """Per layer (1, kv_heads, tokens, head_dim); empty before anything was read."""
    values: list[torch.Tensor] = field(default_factory=list)
    numbers: torch.Tensor | None = None
    """What was read out so far, logprobs or values: (wanted,)."""
    indices: tuple[int, ...] = ()
    """Which numbers of the tree these are."""

    def row(self, indices: Sequence[int]) -> torch.Tensor:
        """These numbers of the tree, in this order."""
        assert self.numbers is not None
        places = [self._places[index] for index in indices]
        return self.numbers[torch.tensor(places, device=self.numbers.device)]

    @cached_property
    def _places(self) -> dict[int, int]:
        return {index: place for place, index in enumerate(self.indices)}

    def leaves(self) -> Past:
        """The same numbers cut off from the graph, gathering gradients of their own."""
        return Past(
            [k.detach().requires_grad_() for k in self.keys],
            [v.detach().requires_grad_() for v in self.values],
            None if self.numbers is None else self.numbers.detach().requires_grad_(),
            self.indices,
        )

    def send_back(self, leaves: Past) -> None:
        """Carry the gradients that the leaves gathered through the graph behind these numbers."""
        pairs = [
            (tensor, leaf.grad)
            for tensor, leaf in zip(self._tensors(), leaves._tensors(), strict=True)
            if tensor.requires_grad and leaf.grad is not None
        ]
        if pairs:
            torch.autograd.backward([t for t, _ in pairs], [g for _, g in pairs])

    def _tensors(self) -> list[torch.Tensor]:
        return [*self.keys, *self.values, *([] if self.numbers is None else [self.numbers])]


class TreeState:
    """What the attention of every layer needs to know of a pack: which keys each query sees."""

    def __init__(self, past: Past, blocks: Sequence[Block], *, keep: bool) -> None:
        self.past = past
        self.blocks = blocks
        self.keep = keep
        self.keys: list[torch.Tensor] = []
        self.values: list[torch.Tensor] = []

    def attend(
        self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float
    ) -> torch.Tensor:
        if self.past.keys:
            k = torch.cat([self.past.keys[layer], k], dim=2)
            v = torch.cat([self.past.values[layer], v], dim=2)
        # With checkpointing a layer comes here a second time, on the way back.
        if self.keep and layer == len(self.keys):
            self.keys.append(k)
            self.values.append(v)
        return tree_attention(q, k, v, self.blocks, scale)


@dataclass(frozen=True)
class Placed:
    """A node at its place in a pack: tokens `begin` to `end`, descendants up to `last`."""

    node: Node
    begin: int
    end: int
    last: int


def place(nodes: Sequence[Node]) -> list[Placed]:
    """Every node of these subtrees, depth first, one after the other."""
    placed: list[Placed] = []
    waiting, begin = list(reversed(nodes)), 0
    while waiting:
        node = waiting.pop()
        placed.append(Placed(node, begin, begin + len(node.ids), begin + node.size))
        begin += len(node.ids)
        waiting += reversed(node.children)
    return placed


def blocks_of(placed: Sequence[Placed], past: int) -> list[Block]:
    """Who attends to whom; keys of the `past` tokens stand before those of the pack."""
    blocks = [Block(slice(0, placed[-1].end), slice(0, past), causal=False)] if past else []
    for p in placed:
        own = slice(past + p.begin, past + p.end)
        blocks.append(Block(slice(p.begin, p.end), own, causal=True))
        if p.last > p.end:
            blocks.append(Block(slice(p.end, p.last), own, causal=False))
    return blocks


def forward(
    model: LanguageModel,
    placed: Sequence[Placed],
    past: Past,
    *,
    keep: bool = False,
    read: Readout | None = None,
) -> Past:
    """Pass a pack through the model: the numbers so far, and with `keep` the keys and values so far.

    With `keep` the pack is one node, so that its keys continue those of `past`. `read` None: logprobs.
    """
    device = model.device
    if device.type == "cpu":
        give_back_idle_memory()
    ids = [token for p in placed for token in p.node.ids]
    positions = [p.node.start + i for p in placed for i in range(len(p.node.ids))]
    state = TreeState(past, blocks_of(placed, past.keys[0].shape[2] if past.keys else 0), keep=keep)
    hidden = model.core(
        input_ids=torch.tensor([ids], device=device),
        position_ids=torch.tensor([positions], device=device),
        use_cache=False,
        prefix_state=state,
    ).last_hidden_state[0]
    return Past(state.keys, state.values, *_numbers(placed, hidden, past, read or logprobs_of(model)))


def logprobs_of(model: LanguageModel) -> Readout:
    """Reads the log-probability of each wanted token."""

    def read(hidden: torch.Tensor, wanted: Sequence[Wanted]) -> torch.Tensor:
        return chosen_logprobs(
            model.head,
            hidden,
            torch.tensor([w.token for w in wanted], device=hidden.device),
            torch.tensor([w.temperature for w in wanted], device=hidden.device),
        )

    return read


def _numbers(
    placed: Sequence[Placed], hidden: torch.Tensor, past: Past, read: Readout
) -> tuple[torch.Tensor | None, tuple[int, ...]]:
    wanted = [(w, p.begin + w.place - p.node.start) for p in placed for w in p.node.wanted]
    if not wanted:
        return past.numbers, past.indices
    places = torch.tensor([at for _, at in wanted], device=hidden.device)
    own = read(hidden[places], [w for w, _ in wanted])
    together = own if past.numbers is None else torch.cat([past.numbers, own])
    return together, (*past.indices, *(w.index for w, _ in wanted))
