"""What an update keeps for the way back, tensor by tensor.

With h the hidden width, q and k the widths of all query and key heads, i the feed-forward width and r the rank,
a layer keeps for every token:

    both norms        their input in float32 (h each, the residual stream) and one number
    linear layers     with LoRA the input of every adapter's first matrix, and its r outputs; frozen weights keep none
    attention         rotated queries q, keys k, values k, its output q, and one float32 per head
    feed-forward      the gate before and after its activation and the other branch: 3i

In float32, adapters on one input share it (h for q, k, v; h for gate and up; i for down), and the attention's output
is there already. Beside bf16 weights adapters are float32, and each keeps a float32 copy of its input. Full tuning
keeps the same inputs, and the norms' outputs before their weights. Attention weights are computed again. Dropout is
off. The output layer keeps one hidden-sized vector per scored position where it is frozen, else its logits.
"""

from __future__ import annotations

from groundrule.algorithms.memory_plan.pieces import Pass, Piece
from groundrule.algorithms.memory_plan.settings import PlanSettings
from groundrule.data.model_shape import ModelShape

LOGITS_AT_ONCE = 2**24
"""As in `models.chosen`."""
SCORES_AT_ONCE = 2**24
"""As in `models.tree_attention`: on an accelerator attention weights exist a piece at a time."""

HEAP_LIMIT = 2**25
HEAP_SHARE = 0.8
"""Of a piece's activations, kept whole or computed again, so much lies unused between tensors on a CPU.

The C library's allocator (glibc 2.36) puts tensors below `HEAP_LIMIT` into one heap, where 64-byte alignment keeps a
freed place from being taken again by a tensor of the same size. Fitted to three updates of the embedded model,
each the first of its process (benchmarks/results/grpo_step_trl.json), where it is 0.76 to 0.82. It varies with the
order in which memory is taken, and later updates leave more, up to 2.3 (benchmarks/results/ppo_memory.json). With
MALLOC_MMAP_THRESHOLD_=65536 in the environment nearly nothing is lost, at the price of page faults.
"""

_BEFORE_ATTENTION = frozenset({"q_proj", "k_proj", "v_proj"})
_BEFORE_GATE = frozenset({"gate_proj", "up_proj"})
_BEFORE_DOWN = frozenset({"down_proj"})


def layer_token_bytes(shape: ModelShape, settings: PlanSettings) -> int:
    """Bytes that one layer keeps for one token, without checkpointing."""
    h, q, k, i = shape.hidden, shape.queries, shape.keys, shape.intermediate
    width = settings.width
    norms = 2 * 4 * (h + 1)
    attention = width * (2 * q + 2 * k) + 4 * shape.heads
    return norms + attention + width * 3 * i + _inputs(shape, settings)


def _inputs(shape: ModelShape, settings: PlanSettings) -> int:
    """What the linear layers keep."""
    h, width = shape.hidden, settings.width
    if settings.tuning == "full":
        return width * (2 * h + 2 * h + shape.intermediate)
    targets = [name for name in shape.linears if name in settings.lora_targets]
    inner = 4 * settings.lora_rank * len(targets)
    if settings.precision != "fp32":
        return inner + 4 * sum(shape.linears[name][0] for name in targets)
    kept_once = ((h, _BEFORE_ATTENTION), (h, _BEFORE_GATE), (shape.intermediate, _BEFORE_DOWN))
    return inner + 4 * sum(size for size, names in kept_once if names & set(targets))


def kept_bytes(shape: ModelShape, settings: PlanSettings, piece: Piece) -> int:
    """What all graphs of a piece hold when its loss is known."""
    width, lean = settings.width, settings.gradient_checkpointing
    lean_layers = piece.tokens * shape.layers * width * shape.hidden
    layers = lean_layers if lean else whole_bytes(shape, settings, piece)
    around = piece.tokens * width * 2 * shape.head_dim + piece.scored * width * shape.hidden
    # Frozen embeddings need no gradient, so that the first norm keeps nothing: what the last one keeps is made up for.
    if lean or settings.tuning == "full":
        around += piece.tokens * 4 * (shape.hidden + 1)
    cut = piece.cut * shape.layers * width * 2 * shape.keys
    return layers + around + (2 if lean else 1) * cut


def whole_bytes(shape: ModelShape, settings: PlanSettings, piece: Piece) -> int:
    """What the layers alone would keep without checkpointing."""
    return shape.layers * sum(_pass_bytes(shape, settings, p) for p in piece.passes)


def _pass_bytes(shape: ModelShape, settings: PlanSettings, p: Pass) -> int:
    """One layer of one pass; keys and values from before are copied in front of its own."""
    return p.tokens * layer_token_bytes(shape, settings) + p.past * settings.width * 2 * shape.keys


def logits_bytes(shape: ModelShape, settings: PlanSettings, piece: Piece) -> int:
    """Logits at their peak: a piece, and the one before it, which is let go only when the next is there.

    The softmax is float32; in bf16 the logits exist in both types for a moment. An output layer that is trained keeps
    all its logits and needs a piece for their gradient.
    """
    step = max(1, LOGITS_AT_ONCE // shape.vocabulary)
    first = min(piece.scored, step)
    if settings.tuning == "full":
        return 4 * shape.vocabulary * (piece.scored + first)
    second = min(piece.scored - first, step)
    per_position = 4 if settings.precision == "fp32" else 4 + settings.width
    return shape.vocabulary * (per_position * (second or first) + (4 * first if second else 0))


def way_back_bytes(shape: ModelShape, settings: PlanSettings, piece: Piece) -> int:
    """One layer on its way back: its gradients, and itself again where it is checkpointed."""
    largest = max(piece.passes, key=lambda p: p.tokens)
    gradients = largest.tokens * 4 * 3 * (shape.intermediate + shape.hidden)
    again = max(_pass_bytes(shape, settings, p) for p in piece.passes)
    scores = 0
    if settings.device == "gpu":
        scores = 3 * 4 * min(SCORES_AT_ONCE, shape.heads * largest.tokens * (largest.tokens + largest.past))
    return gradients + scores + (again if settings.gradient_checkpointing else 0)


def heap_bytes(shape: ModelShape, settings: PlanSettings, piece: Piece) -> int:
    """What lies unused between tensors; see `HEAP_SHARE`. An accelerator's allocator is taken to waste nothing."""
    if settings.device != "cpu":
        return 0
    found = 0
    for p in piece.passes:
        inside = p.tokens * layer_token_bytes(shape, settings)
        if p.tokens * settings.width * shape.intermediate >= HEAP_LIMIT:
            inside -= p.tokens * _feed_forward(shape, settings)
        if p.tokens * settings.width * shape.hidden < HEAP_LIMIT:
            found += inside
    return round(HEAP_SHARE * shape.layers * found)


def _feed_forward(shape: ModelShape, settings: PlanSettings) -> int:
    """Of a layer's bytes for one token, those in tensors as wide as the feed-forward layer."""
    is_kept = settings.tuning == "full" or "down_proj" in settings.lora_targets
    input_width = settings.width if settings.tuning == "full" else 4
    return shape.intermediate * (3 * settings.width + (input_width if is_kept else 0))
