"""Answers whose JSON is not as it should be: what can be read is read, the rest is an error or left out."""

from __future__ import annotations

import math

import pytest

from fakes import completion
from groundrule.errors import LlmError
from groundrule.llm.completion import reply_from


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        "hello",
        {},
        {"choices": None},
        {"choices": {"0": "x"}},
        {"choices": ["x"]},
        {"choices": [{"text": "hello"}]},
        {"choices": [{"message": None}]},
    ],
)
def test_an_answer_without_a_message_is_an_error(answer):
    with pytest.raises(LlmError, match="m at the endpoint answered without any choice"):
        reply_from(answer, model="m")


@pytest.mark.parametrize("content", [5, True, {"text": "hello"}])
def test_a_content_that_is_no_text_is_an_error(content):
    with pytest.raises(LlmError, match=f"a content that is a {type(content).__name__} and no text"):
        reply_from(completion(content), model="m")


def test_texts_are_found_among_parts_of_any_kind():
    parts = ["a", {"type": "text", "text": "b"}, None, 3, {"type": "image_url"}, {"type": "text"}]
    assert reply_from(completion(parts), model="m").content == "ab"


def test_a_refusal_may_be_a_part():
    reply = reply_from(completion([{"type": "refusal", "refusal": "no"}]), model="m")
    assert (reply.content, reply.refusal) == ("", "no")


@pytest.mark.parametrize("refusal", ["", None, False, {}])
def test_a_refusal_that_says_nothing_is_none(refusal):
    assert reply_from(completion(refusal=refusal), model="m").refusal is None


@pytest.mark.parametrize(
    ("tokens", "read"),
    [
        (7, 7),
        (7.0, 7),
        (0, 0),
        (None, None),
        ("7", None),
        (True, None),
        (-1, None),
        (math.nan, None),
        ([], None),
    ],
)
def test_only_numbers_of_tokens_are_counted(tokens, read):
    usage = {"prompt_tokens": tokens, "prompt_tokens_details": {"cached_tokens": tokens}}
    found = reply_from(completion(usage=usage), model="m").usage
    assert (found.prompt_tokens, found.completion_tokens, found.cached_tokens) == (read, None, read)


@pytest.mark.parametrize("usage", ["none", [1], {"prompt_tokens_details": "none"}])
def test_a_usage_of_another_form_counts_nothing(usage):
    assert reply_from(completion(usage=usage), model="m").usage.cached_tokens is None


def test_names_and_reasons_of_another_type_do_not_travel_on():
    answer = completion(finish_reason=None, reasoning_content=["x"], reasoning="thought")
    reply = reply_from({**answer, "model": 3}, model="m")
    assert (reply.finish_reason, reply.reasoning, reply.model) == ("stop", "thought", "m")


def with_logprobs(logprobs):
    answer = completion("A")
    answer["choices"][0]["logprobs"] = logprobs
    return reply_from(answer, model="m").top_logprobs


def test_the_likeliest_texts_of_each_token_are_read():
    listed = [{"token": "A", "logprob": -0.1, "bytes": [65]}, {"token": "B", "logprob": -3, "bytes": None}]
    assert with_logprobs(
        {"content": [{"token": "A", "logprob": -0.1, "top_logprobs": listed}, {"token": "."}]}
    ) == ((("A", -0.1), ("B", -3.0)), ())


@pytest.mark.parametrize(
    "logprobs",
    [
        None,
        [],
        {"content": None},
        {"content": [{"token": "A", "logprob": -0.1, "top_logprobs": []}]},
        {"content": [{"top_logprobs": [{"token": 3, "logprob": -1}, {"token": "A", "logprob": "low"}, 5]}]},
        {
            "content": [
                {"top_logprobs": [{"token": "A", "logprob": math.nan}, {"token": "B", "logprob": 0.5}]}
            ]
        },
        {"tokens": ["A"], "token_logprobs": [-0.1]},
    ],
)
def test_log_probabilities_of_another_form_are_none(logprobs):
    assert with_logprobs(logprobs) == ()
