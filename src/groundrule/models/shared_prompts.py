"""Attention of a decoding step over prompts that several rows share, each kept once.

softmax(q k^T * scale) of Vaswani et al. 2017, section 3.2.1, over two blocks of keys: the prompt's,
where all rows of the prompt make one matrix product, and the row's own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch

from groundrule.models.key_values import KeyValues

MOST_PADDING = 1.25
"""Prompts go side by side while the longest is at most so much longer than the shortest."""

Item = TypeVar("Item")


class SharedPrompts:
    """Prompts of about one length, each with the same number of rows, side by side in one tensor."""

    def __init__(self, prompts: Sequence[KeyValues], count: int) -> None:
        self.count = count
        lengths = [p.tokens for p in prompts]
        self.rows = count * len(prompts)
        self._longest = max(lengths)
        self._keys = [
            _stacked(layer, self._longest) for layer in zip(*(p.keys for p in prompts), strict=True)
        ]
        self._values = [
            _stacked(layer, self._longest) for layer in zip(*(p.values for p in prompts), strict=True)
        ]
        kv_heads = prompts[0].keys[0].shape[0]
        self._mask = _padding_mask(lengths, kv_heads, self._keys[0])

    def attend(
        self,
        layer: int,
        q: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        own_mask: torch.Tensor | None,
        scale: float,
    ) -> torch.Tensor:
        """One token a row: q (rows, heads, 1, dim), own keys and values (rows, kv_heads, columns, dim)."""
        rows, heads, _, dim = q.shape
        kv, columns, n = keys.shape[1], keys.shape[2], self.count
        r, prompts = heads // kv, rows // n
        own = torch.bmm(q.reshape(rows * kv, r, dim), keys.flatten(0, 1).transpose(1, 2)).mul_(scale)
        if own_mask is not None:
            own = own.view(rows, kv * r, columns) + own_mask
        own = own.view(prompts, n, kv, r, columns).transpose(1, 2)
        together = q.reshape(prompts, n, kv, r, dim).transpose(1, 2).reshape(prompts * kv, n * r, dim)
        shared = torch.baddbmm(self._mask, together, self._keys[layer].transpose(1, 2), alpha=scale)
        shared = shared.view(prompts, kv, n, r, self._longest)
        weights = torch.softmax(torch.cat([shared, own], dim=-1), dim=-1, dtype=torch.float32).to(q.dtype)
        of_prompt = weights[..., : self._longest].reshape(prompts * kv, n * r, self._longest)
        of_own = weights[..., self._longest :].transpose(1, 2).reshape(rows * kv, r, columns)
        output = torch.bmm(of_prompt, self._values[layer]).view(prompts, kv, n, r, dim).transpose(1, 2)
        output = output + torch.bmm(of_own, values.flatten(0, 1)).view(prompts, n, kv, r, dim)
        return output.reshape(rows, heads, 1, dim)


def arrange(
    items: Sequence[Item], prompt_of: Callable[[Item], KeyValues]
) -> tuple[list[Item], list[SharedPrompts]]:
    """Items in the order of the prompts that they share, and those prompts in as few tensors as fit."""
    by_prompt: dict[int, list[Item]] = {}
    for item in items:
        by_prompt.setdefault(id(prompt_of(item)), []).append(item)
    groups = sorted(by_prompt.values(), key=lambda group: (len(group), prompt_of(group[0]).tokens))
    runs: list[list[list[Item]]] = []
    for group in groups:
        if runs and _fit(runs[-1][0], group, prompt_of):
            runs[-1].append(group)
        else:
            runs.append([group])
    shared = [SharedPrompts([prompt_of(group[0]) for group in run], len(run[0])) for run in runs]
    return [item for run in runs for group in run for item in group], shared


def _fit(first: list[Item], group: list[Item], prompt_of: Callable[[Item], KeyValues]) -> bool:
    shortest, length = prompt_of(first[0]).tokens, prompt_of(group[0]).tokens
    return len(first) == len(group) and length <= MOST_PADDING * shortest


def _stacked(layers: Sequence[torch.Tensor], longest: int) -> torch.Tensor:
    """(prompts x kv_heads, longest, dim), zeros behind shorter prompts."""
    if all(t.shape[1] == longest for t in layers):
        return torch.stack(list(layers)).flatten(0, 1)
    heads, _, dim = layers[0].shape
    made = layers[0].new_zeros(len(layers), heads, longest, dim)
    for i, tensor in enumerate(layers):
        made[i, :, : tensor.shape[1]] = tensor
    return made.flatten(0, 1)


def _padding_mask(lengths: Sequence[int], kv_heads: int, like: torch.Tensor) -> torch.Tensor:
    """(prompts x kv_heads, 1, longest): minus infinity behind each prompt; (1, 1, 1) zero where none is shorter."""
    if len(set(lengths)) == 1:
        return like.new_zeros(1, 1, 1)
    columns = torch.arange(max(lengths), device=like.device)
    behind = columns[None] >= torch.tensor(lengths, device=like.device)[:, None]
    mask = like.new_zeros(behind.shape).masked_fill_(behind, float("-inf"))
    return mask.repeat_interleave(kv_heads, 0)[:, None]
