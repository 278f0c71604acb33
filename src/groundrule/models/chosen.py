"""Log-probabilities of chosen tokens in bounded memory, at any vocabulary, with gradients to the hidden states.

With a frozen output layer W the gradient is known as soon as the logits are:

    d log p(token) / d hidden = (W[token] - sum_v p(v) W[v]) / temperature

so it is formed piece by piece in the forward pass, in place, and no logits are kept for the backward pass.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

LOGITS_AT_ONCE = 2**24
"""Logits that exist together (64 MiB in float32): a piece has so many positions as fit."""


def chosen_logprobs(
    head: Any, hidden: torch.Tensor, tokens: torch.Tensor, temperature: torch.Tensor | float = 1.0
) -> torch.Tensor:
    """log p of one token per position, float32 (positions,); hidden (positions, width), tokens (positions,).

    `temperature`, one for all or (positions,), divides the logits as in sampling; 0 counts as 1. The softmax is
    float32 whatever the model's type. An output layer that is trained, or is more than a matrix and a bias, goes
    through autograd and keeps its logits.
    """
    heat = torch.as_tensor(temperature, dtype=torch.float32, device=hidden.device).expand(len(hidden))
    heat = torch.where(heat == 0, torch.ones_like(heat), heat)
    needs_gradient = torch.is_grad_enabled() and hidden.requires_grad
    if _is_frozen_matrix(head):
        result: torch.Tensor = _Chosen.apply(  # type: ignore[no-untyped-call]
            hidden, head.weight, head.bias, tokens, heat, needs_gradient
        )
        return result
    pieces = []
    for part in _pieces(len(hidden), int(head.weight.shape[0])):
        logits = head(hidden[part]).float() / heat[part, None]
        pieces.append(logits.gather(-1, tokens[part, None])[:, 0] - torch.logsumexp(logits, dim=-1))
    return torch.cat(pieces)


class _Chosen(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        hidden: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        tokens: torch.Tensor,
        heat: torch.Tensor,
        needs_gradient: bool,
    ) -> torch.Tensor:
        logprobs = hidden.new_empty(len(hidden), dtype=torch.float32)
        direction = torch.empty_like(hidden) if needs_gradient else None
        for part in _pieces(len(hidden), len(weight)):
            logits = torch.nn.functional.linear(hidden[part], weight, bias).float().div_(heat[part, None])
            logits.sub_(logits.amax(-1, keepdim=True))
            chosen = logits.gather(-1, tokens[part, None])[:, 0]
            total = logits.exp_().sum(-1)
            logprobs[part] = chosen - total.log()
            if direction is not None:
                expected = (logits.div_(total[:, None]).to(weight.dtype) @ weight).float()
                direction[part] = (weight[tokens[part]] - expected) / heat[part, None]
        if direction is not None:
            ctx.save_for_backward(direction)
        return logprobs

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> Any:
        (direction,) = ctx.saved_tensors
        return (gradients[0][:, None] * direction).to(direction.dtype), None, None, None, None, None


def _is_frozen_matrix(head: Any) -> bool:
    return type(head) is torch.nn.Linear and not any(p.requires_grad for p in head.parameters())


def _pieces(positions: int, vocabulary: int) -> Iterator[slice]:
    step = max(1, LOGITS_AT_ONCE // vocabulary)
    return (slice(start, start + step) for start in range(0, positions, step))
