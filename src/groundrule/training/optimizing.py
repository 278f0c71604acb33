"""From gathered gradients to moved weights, for every trainer of an adapter."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping

import torch

logger = logging.getLogger(__name__)


def adamw(
    parameters: Mapping[str, torch.Tensor],
    rate: float,
    *,
    betas: tuple[float, float] = (0.9, 0.999),
    weight_decay: float = 0.0,
) -> torch.optim.AdamW:
    """AdamW (Loshchilov and Hutter 2019), one tensor after the other (`foreach` off)."""
    return torch.optim.AdamW(
        parameters.values(), lr=rate, betas=betas, weight_decay=weight_decay, foreach=False
    )


def take_step(optimizer: torch.optim.Optimizer, loss: float, *, max_grad_norm: float) -> tuple[float, bool]:
    """Clip the gradients, step and clear them; the norm before clipping, and whether the weights were moved.

    They stay as they are where loss or gradient is not finite: a bound on a ratio stops the gradient of a loss that
    is no number, so both are looked at.
    """
    parameters = [p for group in optimizer.param_groups for p in group["params"]]
    norm = torch.nn.utils.clip_grad_norm_(parameters, max_grad_norm).item()
    is_finite = math.isfinite(norm) and math.isfinite(loss)
    if is_finite:
        optimizer.step()
    else:
        logger.warning("loss or gradient is not finite; this step leaves the weights as they are")
    optimizer.zero_grad(set_to_none=True)
    return norm, is_finite


def set_learning_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """For all parameters, from the next step on."""
    for group in optimizer.param_groups:
        group["lr"] = rate
