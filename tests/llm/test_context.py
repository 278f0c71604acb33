"""How much a judge can read."""

import pytest

from groundrule.llm.context import context_of

KNOWN = {
    "openai/gpt-4.1-mini": 1_000_000,
    "gpt-4o-2024-08-06": 128_000,
    "gpt-4": 8_192,
    "openai/o3": 200_000,
    "o4-mini": 200_000,
    "anthropic/claude-sonnet-4-6": 200_000,
    "gemini/gemini-2.5-flash": 1_000_000,
    "openrouter/meta-llama/llama-3.3-70b-instruct": 131_072,
    "meta-llama/Meta-Llama-3-8B-Instruct": 8_192,
    "hosted_vllm/Qwen/Qwen2.5-7B-Instruct": 32_768,
    "Qwen3-30B-A3B-Instruct-2507": 262_144,
    "mistral/mistral-large-latest": 128_000,
    "microsoft/Phi-3-mini-128k-instruct": 128_000,
    "microsoft/Phi-3-mini-4k-instruct": 4_000,
    "local/smollm2-135m": 8_192,
}


@pytest.mark.parametrize(("model", "tokens"), KNOWN.items(), ids=KNOWN)
def test_known_families_have_their_context(model, tokens):
    assert context_of(model) == tokens


def test_an_unknown_model_of_a_provider_gets_a_cautious_guess():
    assert context_of("hosted_vllm/our-own-model") == 32_768
    assert context_of("our-own-model", endpoint="http://localhost:8000/v1") == 32_768


def test_a_function_has_no_context_that_one_could_know():
    assert context_of("my_judge") is None
    assert context_of("") is None


def test_ollama_is_taken_at_its_small_default_whatever_the_model():
    assert context_of("ollama/llama3.1") == 4_096
    assert context_of("llama3.1", endpoint="http://localhost:11434/v1") == 4_096


def test_what_the_user_states_counts_before_all_else():
    assert context_of("ollama/llama3.1", {"num_ctx": 16_384}) == 16_384
    assert context_of("hosted_vllm/gemma-2-9b", {"max_model_len": 4_096}) == 4_096


@pytest.mark.parametrize("nonsense", [0, -1, True, "many", None])
def test_a_stated_context_that_is_no_count_is_not_taken(nonsense):
    assert context_of("ollama/llama3.1", {"num_ctx": nonsense}) == 4_096


def test_a_version_in_a_name_is_no_size():
    assert context_of("llama-3.2-1b") == 131_072
    assert context_of("together/unknown-7b") == 32_768
