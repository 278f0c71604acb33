"""What writing answers needs: a snapshot of the policy, and keys and values."""

from __future__ import annotations

from groundrule.algorithms.memory_plan.settings import ALL_LINEARS, PlanSettings
from groundrule.data.model_shape import ModelShape

ROOM = 128
"""As in `models.decoding`: columns of the running batch are added so many at once."""
MOST_ROWS = 64
"""As in `models.decoder`: answers that are decoded together."""
CACHE_BYTES = 1 << 30
"""As in `models.decoder`: the most that is kept of prompts and answers."""


def snapshot_bytes(shape: ModelShape, settings: PlanSettings) -> int:
    """The weights in which the policy differs from what is loaded.

    Layers with an adapter are merged into weights of their own. In float32 on a CPU every linear layer is packed,
    the output layer too, whether or not it is tied.
    """
    if settings.device == "cpu" and settings.precision == "fp32":
        return 4 * (shape.linear_weights(ALL_LINEARS) + shape.vocabulary * shape.hidden)
    targets = settings.lora_targets if settings.tuning == "lora" else ALL_LINEARS
    return settings.width * shape.linear_weights(targets)


def token_bytes(shape: ModelShape, settings: PlanSettings) -> int:
    """Keys and values of one token in all layers."""
    return settings.width * 2 * shape.keys * shape.layers


def cache_bytes(shape: ModelShape, settings: PlanSettings) -> int:
    """Keys and values of the step's prompts and answers, kept until the next version of the policy."""
    group = settings.prompt_tokens + settings.group_size * (settings.answer_tokens - 1)
    return min(CACHE_BYTES, settings.groups * group * token_bytes(shape, settings))


def batch_bytes(shape: ModelShape, settings: PlanSettings) -> int:
    """The running batch at its fullest.

    The batch's prompts as they were read and once more side by side; the rows' own columns, with the buffer that they
    were in before; and a step's logits with their probabilities, in float32.
    """
    rows = min(MOST_ROWS, settings.groups * settings.group_size)
    prompts = -(-rows // settings.group_size)
    columns = (settings.answer_tokens // ROOM + 1) * ROOM
    tokens = 2 * prompts * settings.prompt_tokens + 2 * rows * columns
    return tokens * token_bytes(shape, settings) + 2 * 4 * rows * shape.vocabulary
