"""Gradient checkpointing (Chen et al. 2016): layers keep their input only and are computed again on the way back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from functools import partial
from typing import Any

from groundrule.errors import ConfigError
from groundrule.models.load import LanguageModel


@contextlib.contextmanager
def checkpointed(model: LanguageModel) -> Iterator[None]:
    """Inside, forward passes with gradients keep one hidden state a layer instead of all that is in it.

    Transformers checkpoints only layers in training mode, so the layers alone are switched to it: what is inside
    them stays in evaluation mode, and no dropout wakes up.
    """
    from torch.utils.checkpoint import checkpoint
    from transformers.modeling_layers import GradientCheckpointingLayer

    layers: list[Any] = [m for m in model.core.modules() if isinstance(m, GradientCheckpointingLayer)]
    if not layers:
        raise ConfigError(
            f"{model.name} ({type(model.causal_lm).__name__}) has no layers that can be checkpointed; "
            "set gradient_checkpointing to false and lower tokens_at_once"
        )
    before = [(layer.gradient_checkpointing, layer.training) for layer in layers]
    for layer in layers:
        layer._gradient_checkpointing_func = partial(
            checkpoint, use_reentrant=False, preserve_rng_state=False
        )
        layer.gradient_checkpointing = layer.training = True
    try:
        yield
    finally:
        for layer, (was_on, was_training) in zip(layers, before, strict=True):
            layer.gradient_checkpointing, layer.training = was_on, was_training
