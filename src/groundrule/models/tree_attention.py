"""Attention over a tree of tokens without padding, copies or masks between branches.

The tokens of a pack stand in depth-first order, so that what follows a node in the tree is one run after it.
Attention falls into blocks of (queries, keys): every node over itself, causally, and every node's descendants
over it, without a mask. Blocks of the same query are put together by their log-sum-exp; given the final output
and log-sum-exp each block's gradient is exact by itself (Dao et al. 2022, "FlashAttention", appendix B; the same
identity as in ring attention, Liu et al. 2023). Memory grows with tokens, not with pairs of tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

SCORES_AT_ONCE = 2**24
"""Attention weights that exist together where no fused kernel is used."""

_GROUPS_SINCE = (2, 13)
"""The first torch whose fused CPU kernel is known here to read fewer key heads than query heads correctly."""


@dataclass(frozen=True)
class Block:
    """Queries `q` attend to keys `k`, both runs of tokens; causal blocks are square."""

    q: slice
    k: slice
    causal: bool


@dataclass(frozen=True)
class Part:
    """The gradients of one block."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor


def tree_attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, blocks: Sequence[Block], scale: float
) -> torch.Tensor:
    """softmax(q k^T scale) v over the blocks: q (1, heads, queries, dim), k and v (1, kv_heads, keys, dim)."""
    result: torch.Tensor = _TreeAttention.apply(q, k, v, blocks, scale)  # type: ignore[no-untyped-call]
    return result


class _TreeAttention(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        blocks: Sequence[Block],
        scale: float,
    ) -> torch.Tensor:
        output = torch.zeros_like(q, dtype=torch.float32)
        lse = q.new_full(q.shape[:-1], float("-inf"), dtype=torch.float32)
        for b in blocks:
            part, part_lse = block_forward(q[:, :, b.q], k[:, :, b.k], v[:, :, b.k], b.causal, scale)
            before, after = lse[:, :, b.q], torch.logaddexp(lse[:, :, b.q], part_lse)
            output[:, :, b.q] *= (before - after).exp()[..., None]
            output[:, :, b.q] += part * (part_lse - after).exp()[..., None]
            lse[:, :, b.q] = after
        output = output.to(q.dtype)
        ctx.save_for_backward(q, k, v, output, lse)
        ctx.blocks, ctx.scale = blocks, scale
        return output

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        q, k, v, output, lse = ctx.saved_tensors
        (gradient,) = gradients
        total = Part(*(torch.zeros_like(t, dtype=torch.float32) for t in (q, k, v)))
        for b in ctx.blocks:
            part = block_backward(
                gradient[:, :, b.q], q[:, :, b.q], k[:, :, b.k], v[:, :, b.k],
                output[:, :, b.q], lse[:, :, b.q], b.causal, ctx.scale,
            )  # fmt: skip
            total.q[:, :, b.q] += part.q
            total.k[:, :, b.k] += part.k
            total.v[:, :, b.k] += part.v
        return total.q.to(q.dtype), total.k.to(k.dtype), total.v.to(v.dtype), None, None


def block_forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Output (1, heads, queries, dim) and log-sum-exp (1, heads, queries) of one block."""
    if _is_fused(q, k):
        flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        output, lse = flash(q, k, v, 0.0, causal, scale=scale)
        return output, lse
    return plain_forward(q, k, v, causal, scale)


def block_backward(
    gradient: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    output: torch.Tensor,
    lse: torch.Tensor,
    causal: bool,
    scale: float,
) -> Part:
    """Gradients of one block, from the output and log-sum-exp over all blocks."""
    if _is_fused(q, k):
        flash = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward
        return Part(*flash(gradient, q, k, v, output, lse, 0.0, causal, scale=scale))
    return plain_backward(gradient, q, k, v, output, lse, causal, scale)


def _is_fused(q: torch.Tensor, k: torch.Tensor) -> bool:
    if q.device.type != "cpu":
        return False
    version = tuple(int(part) for part in torch.__version__.split(".")[:2])
    return q.shape[1] == k.shape[1] or version >= _GROUPS_SINCE


def plain_forward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool, scale: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """`block_forward` in plain tensor operations, for devices without a fused kernel that we know."""
    outputs, totals = [], []
    for piece in _query_pieces(q, k):
        scores = _scores(q[:, :, piece], k, piece.start, causal, scale)
        lse = torch.logsumexp(scores, dim=-1)
        outputs.append(_ungroup((scores - lse[..., None]).exp().to(v.dtype) @ v[0], q.shape[1]))
        totals.append(_ungroup(lse[..., None], q.shape[1])[..., 0])
    return torch.cat(outputs, dim=2), torch.cat(totals, dim=2)


def plain_backward(
    gradient: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    output: torch.Tensor,
    lse: torch.Tensor,
    causal: bool,
    scale: float,
) -> Part:
    """`block_backward` in plain tensor operations; weights are computed again, a piece of queries at a time."""
    groups = k.shape[1]
    dq, dk, dv = [], torch.zeros_like(k[0], dtype=torch.float32), torch.zeros_like(v[0], dtype=torch.float32)
    for piece in _query_pieces(q, k):
        weights = _scores(q[:, :, piece], k, piece.start, causal, scale)
        weights = weights.sub_(_group(lse[:, :, piece, None], groups)).exp_()
        upstream = _group(gradient[:, :, piece], groups)
        dv += weights.to(v.dtype).transpose(1, 2) @ upstream
        inner = (upstream.float() * _group(output[:, :, piece], groups)).sum(-1, keepdim=True)
        slopes = ((upstream @ v[0].transpose(1, 2)).float() - inner).mul_(weights).mul_(scale).to(q.dtype)
        dq.append(_ungroup(slopes @ k[0], q.shape[1]))
        dk += slopes.transpose(1, 2) @ _group(q[:, :, piece], groups)
    return Part(torch.cat(dq, dim=2), dk[None], dv[None])


def _query_pieces(q: torch.Tensor, k: torch.Tensor) -> list[slice]:
    step = max(1, SCORES_AT_ONCE // (q.shape[1] * k.shape[2]))
    return [slice(start, min(start + step, q.shape[2])) for start in range(0, q.shape[2], step)]


def _scores(q: torch.Tensor, k: torch.Tensor, first: int, causal: bool, scale: float) -> torch.Tensor:
    """Scaled scores in float32, grouped: (kv_heads, heads per kv_head x queries, keys)."""
    scores = (_group(q, k.shape[1]) @ k[0].transpose(1, 2)).float() * scale
    if causal:
        queries, keys = q.shape[2], k.shape[2]
        later = torch.ones(queries, keys, dtype=torch.bool, device=q.device).triu(1 + first)
        scores.view(k.shape[1], -1, queries, keys).masked_fill_(later, float("-inf"))
    return scores


def _group(per_head: torch.Tensor, kv_heads: int) -> torch.Tensor:
    """(1, heads, queries, x) -> (kv_heads, heads per kv_head x queries, x)."""
    return per_head[0].reshape(kv_heads, -1, per_head.shape[-1])


def _ungroup(grouped: torch.Tensor, heads: int) -> torch.Tensor:
    """The way back of `_group`."""
    return grouped.reshape(1, heads, -1, grouped.shape[-1])
