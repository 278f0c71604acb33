"""What each family of models takes."""

import pytest

from groundrule.llm.params import adapted, fitted, is_reasoning_model, refused_param, takes_images


@pytest.mark.parametrize(
    "model", ["o1", "o3", "o3-mini", "o4-mini-2025-04-16", "gpt-5", "gpt-5-mini", "openai/o3"]
)
def test_reasoning_models_are_known(model):
    assert is_reasoning_model(model)


@pytest.mark.parametrize(
    "model", ["gpt-4o", "gpt-4.1", "gpt-5-chat-latest", "olmo-3", "qwen3-32b", "claude-sonnet-4"]
)
def test_other_models_are_not_taken_for_reasoning_models(model):
    assert not is_reasoning_model(model)


@pytest.mark.parametrize(
    ("model", "answer"),
    [
        ("gpt-4o", True),
        ("o3", True),
        ("o3-mini", False),
        ("Qwen/Qwen2.5-VL-7B", True),
        ("deepseek-chat", False),
    ],
)
def test_models_that_read_images_are_known(model, answer):
    assert takes_images(model) is answer


def test_a_token_limit_of_ones_own_wins_over_the_renamed_one():
    assert fitted("o3", {"max_tokens": 5, "max_completion_tokens": 9}) == {"max_completion_tokens": 9}


def test_the_refused_parameter_is_found_in_the_message():
    message = "Unrecognized request argument supplied: reasoning_effort"
    assert refused_param({"reasoning_effort": "low", "seed": 1}, message, None, None) == "reasoning_effort"


def test_a_refused_json_schema_is_the_response_format():
    message = "This model does not support response format `json_schema`."
    assert refused_param({"response_format": {}}, message, None, None) == "response_format"


def test_a_message_that_names_no_parameter_of_ours_refuses_none():
    assert refused_param({"seed": 1}, "this model is not supported", None, None) is None


@pytest.mark.parametrize("refused", ["logprobs", "top_logprobs"])
def test_log_probabilities_are_refused_as_a_whole(refused):
    params = {"logprobs": True, "top_logprobs": 5, "seed": 1}
    assert adapted(params, {refused: None}) == {"seed": 1}
