"""LoRA adapters (Hu et al. 2021): add one, read and write it. `snapshot.py` folds it in for sampling.

One base can carry several by name. The policy's is on and trainable wherever nothing else is said; any other one,
such as a reward model's, is on inside `using_adapter` only, and nobody else notices it.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Sequence
from itertools import count
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict

from groundrule.errors import ConfigError
from groundrule.models.load import LanguageModel

POLICY = "default"
"""The name of the policy's adapter, which is peft's own choice for the first one."""


class LoraSettings(BaseModel):
    """Shape of an adapter."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rank: int = 16
    alpha: int = 32
    """The update is scaled by alpha / rank."""
    targets: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    """Names of the linear layers that get an update."""


def has_adapter(model: LanguageModel, name: str = POLICY) -> bool:
    """Whether the model carries an adapter of this name."""
    return name in getattr(model.network, "peft_config", {})


def unused_name(model: LanguageModel, name: str) -> str:
    """This name for an adapter, with a number behind it where it is taken."""
    names = (name if i == 1 else f"{name}-{i}" for i in count(1))
    return next(free for free in names if not has_adapter(model, free))


def add_adapter(model: LanguageModel, settings: LoraSettings, *, seed: int, name: str = POLICY) -> None:
    """Put an adapter around the model's linear layers; the policy's weights alone are trainable afterwards.

    The output layer is refused as a target when it is tied to the input embeddings: merging there
    would change the embeddings too.
    """
    from peft import LoraConfig, get_peft_model

    config = model.causal_lm.config
    if "lm_head" in settings.targets and getattr(config, "tie_word_embeddings", False):
        raise ConfigError(
            f"targets contains 'lm_head', but {model.name} ties its output layer to the embeddings: "
            "an adapter there would change both; leave it out"
        )
    if has_adapter(model, name):
        raise ConfigError(f"{model.name} has an adapter named {name!r} already; choose another name")
    shape = LoraConfig(
        r=settings.rank,
        lora_alpha=settings.alpha,
        target_modules=list(settings.targets),
        lora_dropout=0.0,
        task_type="CAUSAL_LM",
    )
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft calls what transformers is about to rename.
        torch.manual_seed(seed % 2**63)
        if hasattr(model.network, "peft_config"):
            model.network.add_adapter(name, shape)
        else:
            model.network = get_peft_model(model.causal_lm, shape, adapter_name=name)
    _switch_on(_layers(model), [POLICY])
    model.network.eval()


@contextlib.contextmanager
def using_adapter(model: LanguageModel, name: str) -> Iterator[None]:
    """Inside, this adapter alone is on, and trainable; afterwards all is as it was. Hold the model's lock."""
    layers = _layers(model)
    before = [(layer, list(layer.active_adapters), layer.disable_adapters) for layer in layers]
    trained = [(p, p.requires_grad) for layer in layers for p in layer.parameters()]
    _switch_on(layers, [name])
    try:
        yield
    finally:
        for layer, names, is_off in before:
            layer.set_adapter(names)
            layer.enable_adapters(not is_off)
        for parameter, was_trained in trained:
            parameter.requires_grad_(was_trained)


def adapter_parameters(model: LanguageModel, name: str = POLICY) -> dict[str, torch.nn.Parameter]:
    """An adapter's weights by their names in the network, in a fixed order."""
    return {n: p for n, p in sorted(model.network.named_parameters()) if f".{name}." in n}


def adapter_state(model: LanguageModel, name: str = POLICY) -> dict[str, torch.Tensor]:
    """The adapter's weights under the names that peft writes to disk."""
    from peft import get_peft_model_state_dict

    state: dict[str, torch.Tensor] = get_peft_model_state_dict(model.network, adapter_name=name)
    return {n: tensor.detach().cpu().contiguous() for n, tensor in state.items()}


def load_adapter_state(model: LanguageModel, state: dict[str, torch.Tensor], name: str = POLICY) -> None:
    """Put weights read from disk into the adapter; raises `ConfigError` when they do not fit."""
    from peft import set_peft_model_state_dict

    expected = adapter_state(model, name)
    if expected.keys() != state.keys() or any(expected[k].shape != state[k].shape for k in expected):
        raise ConfigError(
            "the adapter on disk has other layers or another rank than the one in memory; "
            "use the LoRA settings of the run it comes from"
        )
    set_peft_model_state_dict(model.network, state, adapter_name=name)


def is_lora(module: Any) -> bool:
    """Whether a module is a layer with an adapter on it."""
    return hasattr(module, "get_delta_weight") and hasattr(module, "base_layer")


def _layers(model: LanguageModel) -> list[Any]:
    return [module for module in model.network.modules() if is_lora(module)]


def _switch_on(layers: Sequence[Any], names: list[str]) -> None:
    """Let these adapters alone act; a layer that has none of them acts as in the base model."""
    for layer in layers:
        layer.enable_adapters(True)
        layer.set_adapter(names)
