"""A prompt that is computed once for all its answers gives what a plain pass over each sequence gives."""

from __future__ import annotations

import pytest
import torch
import transformers
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    GraniteConfig,
    GraniteForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from groundrule.errors import ModelError
from groundrule.models.load import wrap
from groundrule.models.logprobs import answer_logprobs, read_prompt
from tiny import SMALL, close, full_logprobs, tiny_model, tiny_network

ANSWERS = [[7], [9, 11, 13], [20, 20, 21, 5, 100, 2], [200] * 12]


def prompt_of(length: int) -> list[int]:
    return [(37 * i + 11) % 260 for i in range(length)]


@pytest.mark.parametrize("length", [1, 5, 60])
@pytest.mark.parametrize("temperature", [1.0, 0.7])
def test_answers_after_a_shared_prompt_have_the_logprobs_of_plain_passes(
    length: int, temperature: float
) -> None:
    model, plain, prompt = tiny_model(), tiny_network(), prompt_of(length)

    with torch.inference_mode():
        rows = answer_logprobs(model, read_prompt(model, prompt), ANSWERS, temperature=temperature)
        wanted = [full_logprobs(plain, prompt, answer, temperature=temperature) for answer in ANSWERS]

    assert max(float((a - b).abs().max()) for a, b in zip(rows, wanted, strict=True)) < 1e-4


def test_an_output_layer_of_its_own_gives_the_same_numbers() -> None:
    model, plain, prompt = tiny_model(tied=False), tiny_network(tied=False), prompt_of(9)

    with torch.inference_mode():
        rows = answer_logprobs(model, read_prompt(model, prompt), ANSWERS)
        wanted = [full_logprobs(plain, prompt, answer) for answer in ANSWERS]

    assert max(float((a - b).abs().max()) for a, b in zip(rows, wanted, strict=True)) < 1e-4


def test_tokens_between_prompt_and_answer_are_read_and_not_scored() -> None:
    model, plain, prompt = tiny_model(), tiny_network(), prompt_of(9)
    leads = [[], [3, 4], [5], [6, 7, 8]]

    with torch.inference_mode():
        rows = answer_logprobs(model, read_prompt(model, prompt), ANSWERS, leads=leads)
        wanted = [full_logprobs(plain, [*prompt, *lead], a) for lead, a in zip(leads, ANSWERS, strict=True)]

    assert [len(row) for row in rows] == [1, 3, 6, 12]
    assert max(float((a - b).abs().max()) for a, b in zip(rows, wanted, strict=True)) < 1e-4


def test_many_answer_positions_are_turned_into_logits_in_pieces() -> None:
    model, plain, prompt = tiny_model(), tiny_network(), prompt_of(4)
    answers = [prompt_of(150), prompt_of(180)]

    with torch.inference_mode():
        rows = answer_logprobs(model, read_prompt(model, prompt), answers)
        wanted = [full_logprobs(plain, prompt, answer) for answer in answers]

    assert max(float((a - b).abs().max()) for a, b in zip(rows, wanted, strict=True)) < 1e-4


def test_gradients_are_those_of_plain_passes() -> None:
    model, plain, prompt = tiny_model(), tiny_network(), prompt_of(12)
    for network in (model.network, plain):
        network.requires_grad_(True)

    sum(row.sum() for row in answer_logprobs(model, read_prompt(model, prompt), ANSWERS)).backward()  # type: ignore[union-attr]
    sum(full_logprobs(plain, prompt, answer).sum() for answer in ANSWERS).backward()  # type: ignore[union-attr]

    wanted = dict(plain.named_parameters())
    differences = {n: close(p.grad, wanted[n].grad) for n, p in model.network.named_parameters()}
    assert max(differences.values()) < 1e-4


def test_an_empty_answer_is_refused() -> None:
    model = tiny_model()

    with pytest.raises(ValueError, match=r"answers have \[1, 0\] tokens"):
        answer_logprobs(model, read_prompt(model, [4]), [[5], []])


def test_a_model_whose_attention_does_more_than_this_one_is_refused() -> None:
    small = {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "head_dim": 8,
        "vocab_size": 64,
    }
    network = Gemma2ForCausalLM(Gemma2Config(num_attention_heads=2, num_key_value_heads=1, **small))

    with pytest.raises(ModelError, match="cannot share prefixes: its attention caps its scores"):
        wrap("gemma", network, tiny_model().tokenizer)


def test_a_model_that_scales_its_logits_is_refused() -> None:
    network = GraniteForCausalLM(GraniteConfig(logits_scaling=8.0, **SMALL))

    with pytest.raises(ModelError, match="what it does to its logits, is not known here"):
        wrap("granite", network, tiny_model().tokenizer)


@pytest.mark.parametrize("family", ["Qwen2", "Qwen3", "Mistral", "Phi3"])
def test_other_families_have_the_logprobs_of_plain_passes(family: str) -> None:
    config = getattr(transformers, f"{family}Config")(pad_token_id=3, eos_token_id=2, **SMALL)
    network = getattr(transformers, f"{family}ForCausalLM")(config).eval()
    prompt = prompt_of(20)
    with torch.inference_mode():
        wanted = [full_logprobs(network, prompt, answer) for answer in ANSWERS]

        model = wrap(family, network, tiny_model().tokenizer)
        rows = answer_logprobs(model, read_prompt(model, prompt), ANSWERS)

    assert max(float((a - b).abs().max()) for a, b in zip(rows, wanted, strict=True)) < 1e-4


def test_a_sliding_window_bounds_the_length_that_is_accepted() -> None:
    network = MistralForCausalLM(MistralConfig(sliding_window=128, **SMALL))

    assert wrap("mistral", network, tiny_model().tokenizer).max_tokens == 128
