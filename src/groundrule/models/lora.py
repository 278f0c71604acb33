"""LoRA adapters (Hu et al. 2021): add one, read and write it. `snapshot.py` folds it in for sampling."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from pydantic import BaseModel, ConfigDict

from groundrule.errors import ConfigError
from groundrule.models.load import LanguageModel


class LoraSettings(BaseModel):
    """Shape of an adapter."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rank: int = 16
    alpha: int = 32
    """The update is scaled by alpha / rank."""
    targets: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    """Names of the linear layers that get an update."""


def add_adapter(model: LanguageModel, settings: LoraSettings, *, seed: int) -> None:
    """Wrap the model's linear layers; only adapter weights are trainable afterwards.

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
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft calls what transformers is about to rename.
        torch.manual_seed(seed % 2**63)
        model.network = get_peft_model(
            model.causal_lm,
            LoraConfig(
                r=settings.rank,
                lora_alpha=settings.alpha,
                target_modules=list(settings.targets),
                lora_dropout=0.0,
                task_type="CAUSAL_LM",
            ),
        )
    model.network.eval()


def adapter_parameters(model: LanguageModel) -> dict[str, torch.nn.Parameter]:
    """The trainable weights by name, in a fixed order."""
    return {name: p for name, p in sorted(model.network.named_parameters()) if p.requires_grad}


def adapter_state(model: LanguageModel) -> dict[str, torch.Tensor]:
    """The adapter's weights under the names that peft writes to disk."""
    from peft import get_peft_model_state_dict

    state: dict[str, torch.Tensor] = get_peft_model_state_dict(model.network)
    return {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}


def load_adapter_state(model: LanguageModel, state: dict[str, torch.Tensor]) -> None:
    """Put weights read from disk into the adapter; raises `ConfigError` when they do not fit."""
    from peft import set_peft_model_state_dict

    expected = adapter_state(model)
    if expected.keys() != state.keys() or any(expected[k].shape != state[k].shape for k in expected):
        raise ConfigError(
            "the adapter on disk has other layers or another rank than the one in memory; "
            "use the LoRA settings of the run it comes from"
        )
    set_peft_model_state_dict(model.network, state)


def is_lora(module: Any) -> bool:
    """Whether a module is a layer with an adapter on it."""
    return hasattr(module, "get_delta_weight") and hasattr(module, "base_layer")
