"""Keys and values of a run of tokens: what attention needs to know of the past."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch


@dataclass(frozen=True, eq=False)
class KeyValues:
    """Per layer, keys and values of the same tokens, each (kv_heads, tokens, head_dim)."""

    keys: list[torch.Tensor]
    values: list[torch.Tensor]

    @property
    def tokens(self) -> int:
        return int(self.keys[0].shape[1])

    @property
    def bytes(self) -> int:
        return sum(t.numel() * t.element_size() for t in (*self.keys, *self.values))

    def cut(self, start: int, stop: int) -> KeyValues:
        """A copy of the tokens from `start` up to `stop`, so that the rest can be freed."""
        return _in_one_piece([self], slice(start, stop))


def joined(parts: Sequence[KeyValues]) -> KeyValues:
    """Runs of tokens that follow each other, as one."""
    return parts[0] if len(parts) == 1 else _in_one_piece(parts, slice(None))


def _in_one_piece(parts: Sequence[KeyValues], tokens: slice) -> KeyValues:
    """A copy in a single piece of memory: dozens of small ones a run would leave holes when it is freed."""
    count = len(parts[0].keys)
    layers = zip(*([*p.keys, *p.values] for p in parts), strict=True)
    runs = [[t[:, tokens] for t in layer] for layer in layers]
    sizes = [sum(t.numel() for t in run) for run in runs]
    memory = runs[0][0].new_empty(sum(sizes))
    made = []
    for run, piece in zip(runs, torch.split(memory, sizes), strict=True):
        shape = (run[0].shape[0], sum(t.shape[1] for t in run), run[0].shape[2])
        made.append(torch.cat(run, dim=1, out=piece.view(shape)))
    return KeyValues(made[:count], made[count:])
