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
        return KeyValues(
            [k[:, start:stop].clone() for k in self.keys], [v[:, start:stop].clone() for v in self.values]
        )


def joined(parts: Sequence[KeyValues]) -> KeyValues:
    """Runs of tokens that follow each other, as one."""
    if len(parts) == 1:
        return parts[0]
    return KeyValues(
        [torch.cat(layer, dim=1) for layer in zip(*(p.keys for p in parts), strict=True)],
        [torch.cat(layer, dim=1) for layer in zip(*(p.values for p in parts), strict=True)],
    )
