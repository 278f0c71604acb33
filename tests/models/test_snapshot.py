"""Snapshots: the adapter folded into weights of their own, which later changes do not touch."""

from __future__ import annotations

import pytest
import torch

from groundrule.models.load import LanguageModel
from groundrule.models.lora import LoraSettings, adapter_parameters, add_adapter
from groundrule.models.packed import can_pack
from groundrule.models.snapshot import snapshot
from tiny import close, tiny_model, tiny_network

IDS = torch.tensor([[1, 30, 31, 2, 40, 41, 42]])


def adapted() -> LanguageModel:
    """The tiny model with an adapter that is not zero."""
    model = tiny_model()
    add_adapter(model, LoraSettings(rank=4, alpha=8), seed=0)
    move(model)
    return model


def move(model: LanguageModel, seed: int = 0) -> None:
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in adapter_parameters(model).values():
            parameter.copy_(torch.randn(parameter.shape, generator=random) * 0.2)


def logits(model: LanguageModel) -> torch.Tensor:
    with torch.inference_mode():
        return model.head(model.core(input_ids=IDS, use_cache=False).last_hidden_state)  # type: ignore[no-any-return]


@pytest.mark.parametrize("packed", [True, False])
def test_a_snapshot_gives_the_logits_of_the_adapter(packed: bool) -> None:
    model = adapted()

    assert close(logits(snapshot(model, packed=packed)), logits(model)) < 1e-5


@pytest.mark.parametrize("packed", [True, False])
def test_a_model_without_an_adapter_has_a_snapshot_too(packed: bool) -> None:
    with torch.inference_mode():
        wanted = tiny_network()(input_ids=IDS, use_cache=False).logits

    assert close(logits(snapshot(tiny_model(), packed=packed)), wanted) < 1e-5


def test_a_snapshot_stays_what_it_was_when_the_adapter_moves_on() -> None:
    model = adapted()
    kept = snapshot(model)
    before = logits(kept)

    move(model, seed=1)

    assert torch.equal(logits(kept), before)
    assert close(logits(model), before) > 0.1


def test_taking_a_snapshot_leaves_every_weight_as_it_was() -> None:
    model = adapted()
    before = {name: p.clone() for name, p in model.network.named_parameters()}

    snapshot(model)

    assert all(torch.equal(p, before[name]) for name, p in model.network.named_parameters())
    assert close(logits(model), logits(adapted())) < 1e-6


def test_an_unpacked_snapshot_shares_what_no_adapter_changes() -> None:
    model = adapted()

    assert snapshot(model, packed=False).head.weight is model.head.weight


def test_other_numbers_than_float32_are_not_packed() -> None:
    model = tiny_model()
    model.network.to(torch.bfloat16)

    assert not can_pack(model.network)
