"""Layers are computed again on the way back, and everything is as before afterwards."""

from __future__ import annotations

import pytest
import torch

from groundrule.errors import ConfigError
from groundrule.models.recompute import checkpointed
from tiny import tiny_model


def saved(*, lean: bool) -> int:
    """Numbers that one forward pass keeps for its backward pass."""
    model, kept = tiny_model(), [0]
    model.network.requires_grad_(True)

    def note(tensor: torch.Tensor) -> torch.Tensor:
        kept[0] += tensor.numel()
        return tensor

    ids = torch.arange(40)[None]
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        if lean:
            with checkpointed(model):
                model.core(input_ids=ids, use_cache=False)
        else:
            model.core(input_ids=ids, use_cache=False)
    return kept[0]


def test_less_is_kept_for_the_way_back() -> None:
    assert saved(lean=True) < saved(lean=False) / 3


def test_only_the_layers_are_in_training_mode_and_only_inside() -> None:
    model = tiny_model()

    with checkpointed(model):
        inside = [module for module in model.network.modules() if module.training]

    assert inside == list(model.core.layers)
    assert not any(module.training for module in model.network.modules())


def test_a_model_without_such_layers_is_refused() -> None:
    model = tiny_model()
    model.causal_lm.model = torch.nn.Linear(2, 2)

    with (
        pytest.raises(ConfigError, match=r"tiny .LlamaForCausalLM. has no layers that can be checkpointed"),
        checkpointed(model),
    ):
        pass
