"""Adapters on disk, in peft's format, onto a base model in memory."""

from __future__ import annotations

import warnings
from pathlib import Path

from groundrule.errors import ModelError
from groundrule.models.load import LanguageModel
from groundrule.models.quiet import quiet

ADAPTER = "adapter_model.safetensors"
ADAPTER_CONFIG = "adapter_config.json"
"""As peft calls them."""


def put_on(model: LanguageModel, folder: Path) -> None:
    """Wrap the model with the adapter of a folder, frozen; `ModelError` when it does not fit."""
    from peft import PeftModel

    with quiet(), warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # peft calls what transformers is about to rename.
        try:
            model.network = PeftModel.from_pretrained(model.causal_lm, str(folder))
        except (OSError, ValueError, RuntimeError, KeyError) as error:
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise ModelError(
                f"the adapter in {folder} cannot be put on {model.name!r}: {first}; it belongs to another base model, "
                "or is cut"
            ) from error
    model.network.eval()
