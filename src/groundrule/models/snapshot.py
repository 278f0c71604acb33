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
from groundrule.models.lora import POLICY, is_lora
from groundrule.models.packed import can_pack, pack


def snapshot(model: LanguageModel, *, packed: bool | None = None) -> LanguageModel:
    """A model that answers as `model` does now and shares what no adapter changes. Hold the model's lock.

    `packed` None: where it helps, float32 on a CPU. Raw weights of packed layers stay with `model`.
    """
    if packed is None:
        packed = can_pack(model.network)
    original = model.causal_lm
    # Modules are copied, tensors are shared.
    shared = {id(t): t for t in (*original.parameters(), *original.buffers())}
    twin = copy.deepcopy(original, shared)
    if hasattr(twin, "peft_config"):  # peft notes there what it has put in; it is taken out below.
        del twin.peft_config
    with torch.no_grad():
        for path, module in list(twin.named_modules()):
            if is_lora(module):
                owner, _, name = path.rpartition(".")
                setattr(twin.get_submodule(owner), name, _merged(module))
        if packed:
            pack(twin)
    return replace(model, network=twin.eval(), lock=threading.RLock())


def _merged(layer: Any) -> torch.nn.Linear:
    base = layer.base_layer
    if POLICY not in layer.lora_A:  # Another adapter than the policy's.
        return _linear(base.weight.data, base.bias)
    weight = base.weight.data + layer.get_delta_weight(POLICY).to(base.weight.dtype)
    return _linear(weight, base.bias)


def _linear(weight: torch.Tensor, bias: torch.Tensor | None) -> torch.nn.Linear:
    made = torch.nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    made.weight = torch.nn.Parameter(weight, requires_grad=False)
    if bias is not None:
        made.bias = torch.nn.Parameter(bias.data, requires_grad=False)
    return made
