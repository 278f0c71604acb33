"""Adapters: only they are trained, and they are read back as written."""

from __future__ import annotations

import pytest
import torch

from groundrule.errors import ConfigError
from groundrule.models.load import LanguageModel
from groundrule.models.lora import (
    POLICY,
    LoraSettings,
    adapter_parameters,
    adapter_state,
    add_adapter,
    load_adapter_state,
    using_adapter,
)
from groundrule.models.snapshot import snapshot
from tiny import close, tiny_model, tiny_network

IDS = torch.tensor([[1, 30, 31, 2, 40, 41, 42]])
SMALL = LoraSettings(rank=4, alpha=8)


def adapted(*, seed: int = 0, moved: bool = True, settings: LoraSettings = SMALL) -> LanguageModel:
    """The tiny model with an adapter, `moved` away from the zero that it starts as."""
    model = tiny_model()
    add_adapter(model, settings, seed=seed)
    if moved:
        random = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in adapter_parameters(model).values():
                parameter.copy_(torch.randn(parameter.shape, generator=random) * 0.2)
    return model


def logits(model: LanguageModel) -> torch.Tensor:
    with torch.inference_mode():
        return model.head(model.core(input_ids=IDS, use_cache=False).last_hidden_state)  # type: ignore[no-any-return]


def original_logits() -> torch.Tensor:
    with torch.inference_mode():
        return tiny_network()(input_ids=IDS, use_cache=False).logits  # type: ignore[no-any-return]


def test_a_new_adapter_changes_nothing_yet() -> None:
    assert close(logits(adapted(moved=False)), original_logits()) < 1e-5


def test_a_moved_adapter_changes_the_logits() -> None:
    assert close(logits(adapted()), original_logits()) > 0.1


def test_base_only_is_the_original_model() -> None:
    model = adapted()

    with model.base_only():
        found = logits(model)

    assert close(found, original_logits()) < 1e-5


def test_base_only_inside_base_only_leaves_the_adapter_off() -> None:
    model = adapted()

    with model.base_only():
        with model.base_only():
            pass
        found = logits(model)

    assert close(found, original_logits()) < 1e-5


def test_only_adapter_weights_are_trainable() -> None:
    model = adapted()
    trainable = [name for name, p in model.network.named_parameters() if p.requires_grad]

    assert len(trainable) == 28
    assert all("lora_A" in name or "lora_B" in name for name in trainable)


def test_a_snapshot_and_judging_leave_the_same_weights_trainable() -> None:
    model = adapted()
    before = list(adapter_parameters(model))

    snapshot(model)
    with model.base_only():
        pass

    assert list(adapter_parameters(model)) == before


def test_a_loaded_adapter_leaves_the_same_weights_trainable() -> None:
    fresh, resumed = adapted(seed=1), adapted(seed=2)

    load_adapter_state(resumed, adapter_state(fresh))

    assert list(adapter_parameters(resumed)) == list(adapter_parameters(fresh))


def test_a_loaded_adapter_answers_like_the_saved_one() -> None:
    saved, loaded = adapted(seed=1), adapted(seed=2)

    load_adapter_state(loaded, adapter_state(saved))

    assert torch.equal(logits(loaded), logits(saved))


def test_a_seed_gives_the_same_adapter() -> None:
    first, second = adapter_state(adapted(moved=False, seed=7)), adapter_state(adapted(moved=False, seed=7))

    assert all(torch.equal(first[name], second[name]) for name in first)


def test_adding_an_adapter_leaves_the_program_s_random_state_alone() -> None:
    torch.manual_seed(0)
    wanted = torch.rand(1)
    torch.manual_seed(0)

    adapted(moved=False, seed=9)

    assert torch.equal(torch.rand(1), wanted)


def test_the_output_layer_is_refused_where_it_is_tied_to_the_embeddings() -> None:
    with pytest.raises(ConfigError, match="targets contains 'lm_head', but tiny ties its output layer"):
        add_adapter(tiny_model(), LoraSettings(targets=("q_proj", "lm_head")), seed=0)


def test_the_output_layer_is_taken_where_it_is_not_tied() -> None:
    model = tiny_model(tied=False)

    add_adapter(model, LoraSettings(targets=("lm_head",)), seed=0)

    assert len(adapter_parameters(model)) == 2


def test_an_adapter_of_another_rank_is_refused() -> None:
    with pytest.raises(ConfigError, match="another rank"):
        load_adapter_state(adapted(), adapter_state(adapted(settings=LoraSettings(rank=2))))


def test_a_second_adapter_changes_nothing_until_it_is_used() -> None:
    model = adapted(seed=1)
    wanted = logits(model)

    add_moved(model, "reward", seed=2)

    assert torch.equal(logits(model), wanted)


def test_adapters_of_one_base_answer_as_each_does_alone() -> None:
    both, alone = adapted(seed=1), tiny_model()
    for model in (both, alone):
        add_moved(model, "reward", seed=2)
    with using_adapter(alone, "reward"):
        wanted = logits(alone)

    with using_adapter(both, "reward"):
        found = logits(both)

    assert torch.equal(found, wanted)
    assert close(found, logits(both)) > 0.1


def test_an_adapter_beside_the_policy_s_leaves_a_base_without_one_as_it_was() -> None:
    model = tiny_model()

    add_moved(model, "reward", seed=2)

    assert close(logits(model), original_logits()) < 1e-5
    assert close(logits(snapshot(model, packed=False)), original_logits()) < 1e-5


def test_a_policy_that_comes_after_another_adapter_is_the_same_policy() -> None:
    model = tiny_model()
    add_moved(model, "reward", seed=2)

    add_moved(model, POLICY, seed=1)

    assert torch.equal(logits(model), logits(adapted(seed=1)))


@pytest.mark.parametrize("name", [POLICY, "reward"])
def test_only_the_adapter_in_use_is_trainable(name: str) -> None:
    model = adapted()
    add_adapter(model, SMALL, seed=0, name="reward")

    with using_adapter(model, name):
        inside = trainable(model)

    assert inside == set(adapter_parameters(model, name))
    assert trainable(model) == set(adapter_parameters(model))


def test_using_an_adapter_while_the_policy_s_is_off_leaves_it_off() -> None:
    model = adapted()
    add_moved(model, "reward", seed=2)

    with model.base_only():
        with using_adapter(model, "reward"):
            inside = logits(model)
        after = logits(model)

    assert close(inside, original_logits()) > 0.1
    assert close(after, original_logits()) < 1e-5


def test_a_frozen_adapter_stays_frozen_after_another_was_used() -> None:
    model = adapted()
    add_adapter(model, SMALL, seed=0, name="reward")
    model.network.requires_grad_(False)

    with using_adapter(model, "reward"):
        pass

    assert trainable(model) == set()


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(ConfigError, match="tiny has an adapter named 'default' already"):
        add_adapter(adapted(), SMALL, seed=0)


def add_moved(model: LanguageModel, name: str, *, seed: int) -> None:
    add_adapter(model, SMALL, seed=seed, name=name)
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in adapter_parameters(model, name).values():
            parameter.copy_(torch.randn(parameter.shape, generator=random) * 0.2)


def trainable(model: LanguageModel) -> set[str]:
    return {name for name, p in model.network.named_parameters() if p.requires_grad}
