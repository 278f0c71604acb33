"""The policy as it is now, in weights of its own: adapter folded in, packed for small batches.

The engine answers from a snapshot while the trainer changes the adapter and judges read the base
weights: none of them waits for another, and every answer comes from one version.
"""

from __future__ import annotations

import copy
import threading
from dataclasses import replace
from typing import Any

import torch

from groundrule.models.load import LanguageModel
from groundrule.models.lora import is_lora


class PackedLinear(torch.nn.Module):
    """A linear layer whose weight lies in memory as the CPU's kernels want it.

    A tenth to a third less time than `torch.nn.Linear` at 1 to 64 rows (`benchmarks/generate.py`).
    """

    def __init__(self, weight: torch.Tensor, bias: torch.Tensor | None) -> None:
        super().__init__()
        self.packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach().contiguous(), None)
        self.bias = bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        result: torch.Tensor = torch.ops.mkldnn._linear_pointwise(x, self.packed, self.bias, "none", [], "")
        return result


def snapshot(model: LanguageModel, *, packed: bool | None = None) -> LanguageModel:
    """A model that answers as `model` does now and shares what no adapter changes. Hold the model's lock.

    `packed` None: where it helps, float32 on a CPU. Raw weights of packed layers stay with `model`.
    """
    if packed is None:
        packed = can_pack(model)
    original = model.causal_lm
    # Modules are copied, tensors are shared.
    shared = {id(t): t for t in (*original.parameters(), *original.buffers())}
    twin = copy.deepcopy(original, shared)
    if hasattr(twin, "peft_config"):  # peft notes there what it has put in; it is taken out below.
        del twin.peft_config
    with torch.no_grad():
        for path, module in list(twin.named_modules()):
            if is_lora(module):
                _replace(twin, path, _merged(module), packed)
        for path, module in list(twin.named_modules()):
            if packed and type(module) is torch.nn.Linear:
                _replace(twin, path, module, packed)
    return replace(model, network=twin.eval(), lock=threading.RLock())


def can_pack(model: LanguageModel) -> bool:
    """Whether this machine has the packed kernels for this model."""
    weight = next(model.network.parameters())
    return (
        weight.device.type == "cpu"
        and weight.dtype == torch.float32
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
    )


def _merged(layer: Any) -> torch.nn.Linear:
    base = layer.base_layer
    weight = base.weight.data + layer.get_delta_weight("default").to(base.weight.dtype)
    return _linear(weight, base.bias)


def _linear(weight: torch.Tensor, bias: torch.Tensor | None) -> torch.nn.Linear:
    made = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    made.weight = torch.nn.Parameter(weight, requires_grad=False)
    if bias is not None:
        made.bias = torch.nn.Parameter(bias.data, requires_grad=False)
    return made


def _replace(root: Any, path: str, linear: torch.nn.Linear, packed: bool) -> None:
    owner, _, name = path.rpartition(".")
    setattr(root.get_submodule(owner), name, PackedLinear(linear.weight, linear.bias) if packed else linear)
