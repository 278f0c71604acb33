"""Loading a model by the name of its folder."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from groundrule.errors import ModelError
from groundrule.models.load import load_model
from tiny import tiny_network, tiny_tokenizer

IDS = torch.tensor([[1, 30, 31, 2, 40]])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The tiny model on disk."""
    tiny_network().save_pretrained(tmp_path / "tiny")
    tiny_tokenizer().save_pretrained(tmp_path / "tiny")
    return tmp_path / "tiny"


def test_a_folder_is_loaded_with_the_weights_that_were_saved(folder: Path) -> None:
    model = load_model(str(folder), device="cpu")

    with torch.inference_mode():
        found, wanted = model.network(IDS).logits, tiny_network()(IDS).logits
    assert float((found - wanted).abs().max()) < 1e-4


def test_a_loaded_model_knows_its_end_its_length_and_its_name(folder: Path) -> None:
    model = load_model(str(folder), device="cpu")

    assert (model.eos_ids, model.max_tokens, model.name) == ({2}, 512, str(folder))


def test_nothing_of_a_loaded_model_is_trainable_before_an_adapter_is_added(folder: Path) -> None:
    model = load_model(str(folder), device="cpu")

    assert not any(p.requires_grad for p in model.network.parameters())


def test_a_loaded_model_has_its_chat_template(folder: Path) -> None:
    model = load_model(str(folder), device="cpu")

    ids = model.renderer.prompt_ids([{"role": "user", "content": "hi"}])
    assert model.tokenizer.decode(ids) == "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"


def test_a_model_without_a_chat_template_says_so_by_its_name(folder: Path) -> None:
    (folder / "chat_template.jinja").unlink()
    model = load_model(str(folder), device="cpu")

    with pytest.raises(ModelError, match=r"tiny has no chat template \(tokenizer\.chat_template\)"):
        model.renderer.prompt_ids([{"role": "user", "content": "hi"}])


def test_a_folder_without_a_model_is_an_error_with_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"cannot be loaded as a folder: .*'smollm2-135m'"):
        load_model(str(tmp_path), device="cpu")
