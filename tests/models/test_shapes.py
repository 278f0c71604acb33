"""Sizes of models from configurations made here."""

from __future__ import annotations

from dataclasses import asdict, replace

import pytest
from transformers import GPT2Config, LlamaConfig, Qwen2Config, Qwen3Config

from groundrule.errors import ModelError
from groundrule.models.shapes import EMBEDDED, shape_from, shape_of
from tiny import tiny_network

SIZES = {
    "vocab_size": 100,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


def test_a_folder_with_nothing_but_a_configuration_is_enough(tmp_path):
    LlamaConfig(**SIZES, tie_word_embeddings=True).save_pretrained(tmp_path)
    assert asdict(shape_of(str(tmp_path))) == {
        "name": str(tmp_path),
        "layers": 2,
        "hidden": 32,
        "heads": 4,
        "kv_heads": 2,
        "head_dim": 8,
        "intermediate": 48,
        "vocabulary": 100,
        "tied": True,
        # 100 x 32 + 2 x (2 x 32 x 32 + 2 x 32 x 16 + 3 x 32 x 48 + 2 x 32) + 32
        "parameters": 18_720,
    }


def test_an_output_layer_of_its_own_counts():
    assert shape_from(LlamaConfig(**SIZES, tie_word_embeddings=False), "x").parameters == 18_720 + 3200


def test_biases_of_queries_keys_and_values_count():
    # 2 layers x (32 + 16 + 16)
    assert shape_from(Qwen2Config(**SIZES, tie_word_embeddings=True), "x").parameters == 18_720 + 128


def test_a_head_size_of_its_own_counts():
    found = shape_from(Qwen3Config(**SIZES, head_dim=16, tie_word_embeddings=True), "x")
    # twice the attention: 2 x (2 x 32 x 32 + 2 x 32 x 16) more; and two norms of 16 a layer
    assert (found.head_dim, found.parameters) == (16, 18_720 + 6144 + 64)


def test_the_count_is_that_of_the_model_itself():
    network = tiny_network()
    parameters = sum(p.numel() for p in network.parameters())
    assert shape_from(network.config, "tiny").parameters == parameters


def test_the_embedded_model_is_known_without_fetching_it():
    assert shape_of("smollm2-135m") == EMBEDDED


@pytest.mark.embedded
def test_the_embedded_model_is_what_is_known_of_it(embedded_model):
    assert replace(shape_of(str(embedded_model)), name="smollm2-135m") == EMBEDDED


def test_another_kind_of_model_is_refused_with_a_remedy():
    with pytest.raises(ModelError, match=r"\(gpt2\) gives no intermediate_size.*--params 7e9"):
        shape_from(GPT2Config(), "old")


def test_a_model_that_is_not_there_is_named(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(ModelError, match=r"model '.*empty' cannot be read.*--params"):
        shape_of(str(tmp_path / "empty"))
