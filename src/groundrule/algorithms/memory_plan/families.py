"""A plausible shape for a number of parameters, between two published models.

Layers and width are interpolated on a logarithmic scale; head sizes, vocabulary and tying come from the nearer of
the two; the feed-forward width takes what is then left of the parameters. Outside the table, layers and width grow
or shrink with the cube root of the parameters.
"""

from __future__ import annotations

import math
from dataclasses import replace

from groundrule.data.model_shape import ModelShape
from groundrule.errors import ConfigError

LEAST, MOST = 10**6, 10**13


def _published(
    name: str,
    layers: int,
    hidden: int,
    heads: int,
    kv_heads: int,
    head_dim: int,
    intermediate: int,
    vocabulary: int,
    tied: bool,
) -> ModelShape:
    """Sizes from a model's public configuration."""
    shape = ModelShape(
        name, layers, hidden, heads, kv_heads, head_dim, intermediate, vocabulary, tied, parameters=0
    )
    return replace(shape, parameters=shape.counted)


FAMILIES = (
    _published("SmolLM2-135M", 30, 576, 9, 3, 64, 1536, 49_152, True),
    _published("SmolLM2-360M", 32, 960, 15, 5, 64, 2560, 49_152, True),
    _published("Llama-3.2-1B", 16, 2048, 32, 8, 64, 8192, 128_256, True),
    _published("Llama-3.2-3B", 28, 3072, 24, 8, 128, 8192, 128_256, True),
    _published("Llama-3.1-8B", 32, 4096, 32, 8, 128, 14_336, 128_256, False),
    _published("Llama-3.1-70B", 80, 8192, 64, 8, 128, 28_672, 128_256, False),
    _published("Llama-3.1-405B", 126, 16_384, 128, 8, 128, 53_248, 128_256, False),
)
"""By size; neighbours are interpolated."""


def shape_for(parameters: int) -> ModelShape:
    """A shape with about so many parameters; its name says what it lies between.

    `ModelShape.parameters` is the number given, so that sums over models are exact.
    """
    if not LEAST <= parameters <= MOST:
        raise ConfigError(
            f"parameters is {parameters:,}, which no language model has; give a number from 1e6 to 1e13, as 7e9 or 7B"
        )
    below = [p for p in FAMILIES if p.parameters <= parameters]
    above = [p for p in FAMILIES if p.parameters >= parameters]
    if not below or not above:
        end = (below or above)[-1 if below else 0]
        factor = (parameters / end.parameters) ** (1 / 3)
        return _shape(
            f"scaled from {end.name}", end, end.layers * factor, end.hidden * factor, end.hidden, parameters
        )
    low, high = below[-1], above[0]
    if low is high:
        return _shape(f"as {low.name}", low, low.layers, low.hidden, low.hidden, parameters)
    share = math.log(parameters / low.parameters) / math.log(high.parameters / low.parameters)
    near = low if share < 0.5 else high
    layers = _between(low.layers, high.layers, share)
    hidden = _between(low.hidden, high.hidden, share)
    return _shape(f"between {low.name} and {high.name}", near, layers, hidden, near.hidden, parameters)


def _between(low: int, high: int, share: float) -> float:
    return math.exp(math.log(low) + share * math.log(high / low))


def _shape(
    origin: str, near: ModelShape, layers: float, hidden: float, near_hidden: int, parameters: int
) -> ModelShape:
    """Whole numbers: the width a multiple of the head size, the heads a multiple of the key heads."""
    depth = max(1, round(layers))
    kv_heads = near.kv_heads if hidden >= near.head_dim * near.kv_heads else 1
    heads = max(kv_heads, kv_heads * round(hidden / near.head_dim / kv_heads))
    width = max(near.head_dim, round(hidden / near.head_dim) * near.head_dim)
    shape = replace(
        near,
        name=f"{parameters:,} parameters, shaped {origin}",
        layers=depth,
        hidden=width,
        heads=heads,
        kv_heads=kv_heads,
        intermediate=0,
        parameters=parameters,
    )
    left = (parameters - shape.counted) / (3 * width * depth)
    plausible = near.intermediate / near_hidden * width
    # A tiny model's vocabulary alone may be more than it has parameters.
    intermediate = left if left > width / 2 else plausible
    return replace(shape, intermediate=max(8, round(intermediate / 8) * 8))
