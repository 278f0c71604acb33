"""All parts of a method's memory, and the moment at which most of them are there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from groundrule.algorithms.memory_plan import activations, decoding
from groundrule.algorithms.memory_plan.methods import Method, method_named
from groundrule.algorithms.memory_plan.pieces import largest_piece
from groundrule.algorithms.memory_plan.settings import STATES, PlanSettings
from groundrule.data.model_shape import ModelShape
from groundrule.errors import ConfigError

Moment = Literal["update", "decoding", "publishing"]
"""An optimizer step; answers being written; a new version of the policy being put in the place of the old one."""

ALWAYS: tuple[Moment, ...] = ("update", "decoding", "publishing")
UPDATE: tuple[Moment, ...] = ("update",)


@dataclass(frozen=True)
class Part:
    """One thing in memory."""

    name: str
    parameters: int
    """Weights that belong to a model; copies, gradients and states have none."""
    bytes: int
    moments: tuple[Moment, ...] = ALWAYS
    """When it is there."""


@dataclass(frozen=True)
class MemoryPlan:
    """What must be in memory."""

    models: int
    """Whole sets of weights."""
    parts: tuple[Part, ...]

    @property
    def parameters_total(self) -> int:
        """Of all models, adapters and heads."""
        return sum(part.parameters for part in self.parts)

    @property
    def moments(self) -> dict[Moment, int]:
        """Bytes at each moment that the method has."""
        known = [m for m in ALWAYS if m == "update" or any(p.moments == (m,) for p in self.parts)]
        return {m: sum(part.bytes for part in self.parts if m in part.moments) for m in known}

    @property
    def peak(self) -> Moment:
        """When most is needed."""
        found = self.moments
        return max(found, key=lambda moment: found[moment])

    @property
    def bytes_total(self) -> int:
        """At the peak."""
        return self.moments[self.peak]

    @property
    def peak_parts(self) -> list[Part]:
        """What is there at the peak; their bytes sum to `bytes_total`."""
        return [part for part in self.parts if self.peak in part.moments]


def memory_plan(shape: ModelShape, method: str, settings: PlanSettings | None = None) -> MemoryPlan:
    """The plan for a model and a method.

    Not counted: the interpreter and its libraries (0.3 to 0.5 GiB), and what gives the rewards where the method does
    not train it. Of the models, one is computed with at a time: policy and critic are updated one after the other,
    each with its graph gone and its gradients let go before the other begins, so that the larger of the two, the
    policy with its logits, sets what an update needs; passes without gradients need less.
    """
    settings, known = settings or PlanSettings(), method_named(method)
    models = known.lora_models if settings.tuning == "lora" else known.full_models
    if not models:
        raise ConfigError(
            f"method {method!r} with tuning 'full' is impossible: the reference is what is left when an adapter is "
            f"switched off; choose tuning 'lora', or method {method.partition('-')[0]!r}"
        )
    weights = [
        Part(f"{role} weights", shape.parameters, settings.width * shape.parameters) for role in models
    ]
    added = list(_added(shape, known, settings))
    parts = [*weights, *added, *_training(shape, known, settings), *_update(shape, known, settings)]
    if known.decodes and settings.decodes:
        parts += _decoding(shape, settings)
    return MemoryPlan(len(models), tuple(parts))


def _added(shape: ModelShape, method: Method, settings: PlanSettings) -> Iterator[Part]:
    """Adapters, and heads that give one number a token."""
    width = settings.trained_width
    if settings.tuning == "lora":
        size = shape.adapter_parameters(settings.lora_rank, settings.lora_targets)
        for role in method.adapters:
            yield Part(f"{role} adapter", size, width * size)
    for role in method.heads:
        yield Part(f"{role} head", shape.hidden, width * shape.hidden)


def _trained(shape: ModelShape, method: Method, settings: PlanSettings) -> list[int]:
    """Weights that are trained, of each role."""
    lora = settings.tuning == "lora"
    one = shape.adapter_parameters(settings.lora_rank, settings.lora_targets) if lora else shape.parameters
    return [one + (shape.hidden if role in method.heads else 0) for role in method.trained]


def _training(shape: ModelShape, method: Method, settings: PlanSettings) -> Iterator[Part]:
    """Gradients are let go when their optimizer has stepped: of one role at a time, and only in an update."""
    sizes = [settings.trained_width * weights for weights in _trained(shape, method, settings)]
    yield Part("gradients", 0, max(sizes), UPDATE)
    yield Part(f"optimizer states ({settings.optimizer})", 0, STATES[settings.optimizer] * sum(sizes))


def _update(shape: ModelShape, method: Method, settings: PlanSettings) -> Iterator[Part]:
    minibatch = settings.trajectories_per_update if method.minibatches else None
    piece = largest_piece(settings, answers=method.answers, minibatch=minibatch)
    lean = ", checkpointed" if settings.gradient_checkpointing else ""
    kept = activations.kept_bytes(shape, settings, piece)
    yield Part(f"activations of {piece.tokens:,} tokens{lean}", 0, kept, UPDATE)
    logits = activations.logits_bytes(shape, settings, piece)
    way_back = activations.way_back_bytes(shape, settings, piece)
    # The logits are gone before the way back begins.
    name = (
        "logits of one piece" if logits >= way_back else "one layer on its way back (logits are gone by then)"
    )
    yield Part(name, 0, max(logits, way_back), UPDATE)
    if heap := activations.heap_bytes(shape, settings, piece):
        yield Part("unused between tensors (CPU allocator)", 0, heap, UPDATE)


def _decoding(shape: ModelShape, settings: PlanSettings) -> Iterator[Part]:
    copy = decoding.snapshot_bytes(shape, settings)
    yield Part("snapshot of the policy for decoding", 0, copy)
    yield Part("keys and values kept of prompts and answers", 0, decoding.cache_bytes(shape, settings))
    batch = decoding.batch_bytes(shape, settings)
    yield Part("keys, values and logits of the running batch", 0, batch, ("decoding",))
    yield Part("next snapshot, while both exist", 0, copy, ("publishing",))
