"""A model folder with the adapter folded into the weights: what a warm-up leaves behind."""

from __future__ import annotations

from pathlib import Path

from groundrule._util.folders import replacing_folder
from groundrule.errors import ModelError
from groundrule.models.load import LanguageModel
from groundrule.models.quiet import quiet


def save_merged(model: LanguageModel, folder: Path) -> None:
    """Write weights, config and tokenizer as transformers loads them; the folder appears whole or not at all.

    The model loses its adapter: it is the merged one afterwards. Raises `ModelError` where the folder exists.
    """
    if folder.exists():
        raise ModelError(f"{folder} exists already; choose another folder, or remove it")
    with replacing_folder(folder) as scratch, model.lock, quiet():
        if hasattr(model.network, "peft_config"):
            model.network = model.network.merge_and_unload()
        model.network.save_pretrained(scratch)
        model.tokenizer.save_pretrained(scratch)
