"""The sizes of a model from its configuration alone: no weights are read."""

from __future__ import annotations

from typing import Any

from groundrule.data.model_shape import ModelShape
from groundrule.errors import ModelError
from groundrule.models import embedded

EMBEDDED = ModelShape(
    name=embedded.NAME,
    layers=30,
    hidden=576,
    heads=9,
    kv_heads=3,
    head_dim=64,
    intermediate=1536,
    vocabulary=49_152,
    tied=True,
    parameters=134_515_008,
)
"""Known without fetching it."""


def shape_of(name: str) -> ModelShape:
    """Of the embedded model, a local folder or a Hugging Face id, of which only `config.json` is read.

    Raises `ModelError` where there is no configuration, or one of another kind of model than a dense decoder.
    """
    from transformers import AutoConfig

    from groundrule.models.quiet import quiet

    if name == embedded.NAME:
        return EMBEDDED
    with quiet():
        try:
            config = AutoConfig.from_pretrained(name)
        except (OSError, ValueError) as error:
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise ModelError(
                f"the configuration of model {name!r} cannot be read: {first.rstrip('.')}. Check the spelling and "
                "the network, or give a number of parameters instead (--params 7e9)"
            ) from error
    return shape_from(config, name)


def shape_from(config: Any, name: str) -> ModelShape:
    """Of a transformers configuration; the parameters are counted in a model without memory."""
    config = config.get_text_config()
    values = {field: getattr(config, field, None) for field in _FIELDS}
    missing = [field for field, value in values.items() if not isinstance(value, int)]
    if missing:
        raise ModelError(
            f"the configuration of model {name!r} ({config.model_type}) gives no {missing[0]}: it is not a dense "
            "decoder of the Llama, Qwen or Mistral kind; give a number of parameters instead (--params 7e9)"
        )
    heads, hidden = config.num_attention_heads, config.hidden_size
    return ModelShape(
        name=name,
        layers=config.num_hidden_layers,
        hidden=hidden,
        heads=heads,
        kv_heads=getattr(config, "num_key_value_heads", None) or heads,
        head_dim=getattr(config, "head_dim", None) or hidden // heads,
        intermediate=config.intermediate_size,
        vocabulary=config.vocab_size,
        tied=bool(getattr(config, "tie_word_embeddings", False)),
        parameters=_count(config, name),
    )


_FIELDS = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size")


def _count(config: Any, name: str) -> int:
    """All weights, tied ones once."""
    import torch
    from transformers import AutoModelForCausalLM

    try:
        with torch.device("meta"):
            network = AutoModelForCausalLM.from_config(config)
    except ValueError as error:
        raise ModelError(
            f"model {name!r} ({config.model_type}) is not a causal language model; name one that is"
        ) from error
    return sum(parameter.numel() for parameter in network.parameters())
