"""A model folder with the adapter folded into the weights: what a warm-up leaves behind."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from groundrule.errors import ModelError
from groundrule.models.load import LanguageModel
from groundrule.models.quiet import quiet


def save_merged(model: LanguageModel, folder: Path) -> None:
    """Write weights, config and tokenizer as transformers loads them; the folder appears whole or not at all.

    The model loses its adapter: it is the merged one afterwards. Raises `ModelError` where the folder exists.
    """
    if folder.exists():
        raise ModelError(f"{folder} exists already; choose another folder, or remove it")
    folder.parent.mkdir(parents=True, exist_ok=True)
    scratch = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    shutil.rmtree(scratch, ignore_errors=True)
    with model.lock, quiet():
        if hasattr(model.network, "peft_config"):
            model.network = model.network.merge_and_unload()
        model.network.save_pretrained(scratch)
        model.tokenizer.save_pretrained(scratch)
    scratch.rename(folder)
