"""Attention over a tree equals masked attention, with the fused kernel and without it."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from groundrule.models import tree_attention as module
from groundrule.models.tree_attention import (
    Block,
    Part,
    block_backward,
    plain_backward,
    plain_forward,
    tree_attention,
)

PAST = 5
TREE = [(0, 7, 20), (7, 11, 20), (11, 14, 14), (14, 20, 20), (20, 21, 21)]
"""Begin, end and last descendant of each node."""


def blocks() -> list[Block]:
    found = [Block(slice(0, 21), slice(0, PAST), causal=False)]
    for begin, end, last in TREE:
        found.append(Block(slice(begin, end), slice(PAST + begin, PAST + end), causal=True))
        if last > end:
            found.append(Block(slice(end, last), slice(PAST + begin, PAST + end), causal=False))
    return found


def mask() -> torch.Tensor:
    """(queries, keys), True where a query sees a key."""
    seen = torch.zeros(21, PAST + 21, dtype=torch.bool)
    for b in blocks():
        shape = (b.q.stop - b.q.start, b.k.stop - b.k.start)
        part = torch.ones(shape, dtype=torch.bool)
        seen[b.q, b.k] = part.tril() if b.causal else part
    return seen


def inputs(dtype: torch.dtype = torch.float32) -> list[torch.Tensor]:
    torch.manual_seed(0)
    shapes = [(1, 6, 21, 8), (1, 2, PAST + 21, 8), (1, 2, PAST + 21, 8)]
    return [torch.randn(shape).to(dtype).requires_grad_() for shape in shapes]


def gradients(output: torch.Tensor, tensors: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
    weights = torch.linspace(-1, 1, output.numel()).view_as(output)
    return torch.autograd.grad((output * weights).sum(), tensors)


@pytest.fixture(params=["fused", "plain", "plain, one query at a time"])
def kernel(request: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param != "fused":
        monkeypatch.setattr(module, "block_forward", plain_forward)
        monkeypatch.setattr(module, "block_backward", plain_backward)
    if request.param.endswith("time"):
        monkeypatch.setattr(module, "SCORES_AT_ONCE", 1)


def test_values_and_gradients_are_those_of_masked_attention(kernel: None) -> None:
    tensors = inputs()

    found = tree_attention(*tensors, blocks(), 0.3)
    wanted = functional.scaled_dot_product_attention(*tensors, attn_mask=mask(), scale=0.3, enable_gqa=True)

    assert float((found - wanted).abs().max().detach()) < 1e-5
    pairs = zip(gradients(found, tensors), gradients(wanted, tensors), strict=True)
    assert max(float((a - b).abs().max()) for a, b in pairs) < 1e-5


def test_bf16_is_near_float32(kernel: None) -> None:
    tensors, exact = inputs(torch.bfloat16), inputs()

    found = tree_attention(*tensors, blocks(), 0.3)
    wanted = tree_attention(*exact, blocks(), 0.3)

    assert found.dtype == torch.bfloat16
    assert float((found - wanted).abs().max().detach()) < 0.05
    pairs = zip(gradients(found, tensors), gradients(wanted, exact), strict=True)
    assert max(float((a - b).abs().max()) for a, b in pairs) < 0.1


def test_both_kernels_give_the_same_parts() -> None:
    q, k, v = (t.detach() for t in inputs())
    output, lse = plain_forward(q, k, v, False, 0.3)

    one: Part = block_backward(torch.ones_like(q), q, k, v, output, lse, False, 0.3)
    other = plain_backward(torch.ones_like(q), q, k, v, output, lse, False, 0.3)

    assert max(float((getattr(one, n) - getattr(other, n)).abs().max()) for n in "qkv") < 1e-5
