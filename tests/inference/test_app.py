"""The local endpoint as the official OpenAI client sees it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient

from groundrule.inference.app import Endpoint
from groundrule.inference.engine import Engine
from groundrule.inference.server import LocalServer
from tiny import ASK, full_logprobs, tiny_model, tiny_network

KEY = "secret-of-the-test"


@pytest.fixture(scope="module")
def engine() -> Iterator[Engine]:
    made = Engine(tiny_model(), seed=1, version=3)
    yield made
    made.close()


@pytest.fixture(scope="module")
def base_url(engine: Engine) -> Iterator[str]:
    server = LocalServer(Endpoint(engine, lambda: ["tiny", "tiny@3"], api_key=KEY).app())
    yield server.base_url
    server.close()


def client_of(base_url: str, key: str = KEY) -> AsyncOpenAI:
    return AsyncOpenAI(
        base_url=base_url, api_key=key, max_retries=0, http_client=DefaultAsyncHttpxClient(trust_env=False)
    )


@pytest.fixture
async def client(base_url: str) -> AsyncIterator[AsyncOpenAI]:
    async with client_of(base_url) as made:
        yield made


async def ask(client: AsyncOpenAI, **more: Any) -> Any:
    return await client.chat.completions.create(
        **{"model": "tiny", "messages": ASK, "max_tokens": 6, **more}  # type: ignore[arg-type]
    )


async def refusal(client: AsyncOpenAI, **more: Any) -> openai.APIStatusError:
    with pytest.raises(openai.APIStatusError) as caught:
        await ask(client, **more)
    return caught.value


async def test_a_chat_completion_has_openai_s_shape(client: AsyncOpenAI) -> None:
    reply = await ask(client)

    assert (reply.object, reply.model, len(reply.choices)) == ("chat.completion", "tiny", 1)
    assert reply.choices[0].message.role == "assistant"
    assert reply.choices[0].finish_reason in ("stop", "length")


async def test_ids_logprobs_and_how_it_was_sampled_are_there_unasked(client: AsyncOpenAI) -> None:
    reply = await ask(client, temperature=0.7, top_p=0.9)
    [choice] = reply.choices

    assert len(choice.token_ids) == len(choice.logprobs.content) > 0
    assert choice.prompt_token_ids == tiny_model().renderer.prompt_ids(ASK)
    assert choice.sampling == {"temperature": 0.7, "top_p": 0.9}
    assert choice.policy_version == 3


async def test_logprobs_are_those_of_the_plain_model(client: AsyncOpenAI) -> None:
    [choice] = (await ask(client, temperature=0.7)).choices

    wanted = full_logprobs(tiny_network(), choice.prompt_token_ids, choice.token_ids, temperature=0.7)
    assert [t.logprob for t in choice.logprobs.content] == pytest.approx(wanted.tolist(), abs=1e-4)


async def test_n_answers_come_in_order_and_differ(client: AsyncOpenAI) -> None:
    reply = await ask(client, n=4)

    assert [c.index for c in reply.choices] == [0, 1, 2, 3]
    assert len({tuple(c.token_ids) for c in reply.choices}) == 4


async def test_temperature_zero_gives_the_same_answer_every_time(client: AsyncOpenAI) -> None:
    reply = await ask(client, n=3, temperature=0)

    assert len({tuple(c.token_ids) for c in reply.choices}) == 1


async def test_a_seed_gives_the_same_answers_again(client: AsyncOpenAI) -> None:
    first, second = await ask(client, seed=11, n=2), await ask(client, seed=11, n=2)

    assert [c.token_ids for c in first.choices] == [c.token_ids for c in second.choices]


async def test_requests_without_a_seed_get_other_answers(client: AsyncOpenAI) -> None:
    first, second = await ask(client), await ask(client)

    assert first.choices[0].token_ids != second.choices[0].token_ids


async def test_a_stop_string_ends_the_answer_before_it(client: AsyncOpenAI) -> None:
    whole = (await ask(client, temperature=0)).choices[0].message.content
    stop = whole[-1]

    [choice] = (await ask(client, temperature=0, stop=[stop])).choices

    assert choice.message.content == whole[: whole.index(stop)]
    assert choice.finish_reason == "stop"


async def test_max_completion_tokens_is_the_newer_name(client: AsyncOpenAI) -> None:
    reply = await ask(client, max_tokens=None, max_completion_tokens=1)

    assert len(reply.choices[0].token_ids) == 1


async def test_usage_counts_the_prompt_once_and_all_answers(client: AsyncOpenAI) -> None:
    reply = await ask(client, n=3)

    sampled = sum(len(c.token_ids) for c in reply.choices)
    assert reply.usage.prompt_tokens == len(reply.choices[0].prompt_token_ids)
    assert reply.usage.completion_tokens == sampled
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + sampled


async def test_the_served_names_are_listed(client: AsyncOpenAI) -> None:
    assert [model.id async for model in client.models.list()] == ["tiny", "tiny@3"]


async def test_a_name_with_its_step_is_answered(client: AsyncOpenAI) -> None:
    assert (await ask(client, model="tiny@3")).model == "tiny@3"


async def test_nulls_and_neutral_values_are_parameters_left_out(client: AsyncOpenAI) -> None:
    more = {"temperature": None, "top_k": -1, "repetition_penalty": 1.0}

    reply = await ask(client, presence_penalty=0, stream=False, user="somebody", extra_body=more)

    assert reply.choices[0].sampling["temperature"] == 1.0


async def test_a_wrong_key_is_refused(base_url: str) -> None:
    async with client_of(base_url, "wrong") as stranger:
        error = await refusal(stranger)

    assert isinstance(error, openai.AuthenticationError)
    assert error.code == "invalid_api_key"


async def test_a_wrong_key_does_not_learn_the_served_names(base_url: str) -> None:
    async with client_of(base_url, "wrong") as stranger:
        with pytest.raises(openai.AuthenticationError):
            await stranger.models.list()


async def test_a_wrong_model_is_refused_with_the_served_names(client: AsyncOpenAI) -> None:
    error = await refusal(client, model="gpt-5")

    assert isinstance(error, openai.NotFoundError)
    assert (error.code, error.param) == ("model_not_found", "model")
    assert "'gpt-5' is not served here; served: tiny, tiny@3" in str(error)


async def test_too_long_a_context_is_refused_with_its_numbers(client: AsyncOpenAI) -> None:
    error = await refusal(client, messages=[{"role": "user", "content": "x" * 600}])

    assert isinstance(error, openai.BadRequestError)
    assert error.code == "context_length_exceeded"
    assert "at most 512 tokens, the messages have" in str(error)


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "wizard", "content": "hi"}]}, "messages[0].role"),
        ({"n": 0}, "n"),
        ({"temperature": -1}, "temperature"),
        ({"max_tokens": 0}, "max_tokens"),
    ],
)
async def test_a_bad_value_is_refused_by_its_place(
    client: AsyncOpenAI, more: dict[str, Any], place: str
) -> None:
    error = await refusal(client, **more)

    assert (error.status_code, error.param) == (400, place)
    assert error.type == "invalid_request_error"


async def test_sampling_parameters_reach_the_sampler(client: AsyncOpenAI) -> None:
    greedy = await ask(client, temperature=0.0)
    narrow = await ask(client, temperature=2.0, seed=5, extra_body={"top_k": 1})
    barred = await ask(client, temperature=0.0, extra_body={"repetition_penalty": 1e9})

    assert narrow.choices[0].message.content == greedy.choices[0].message.content
    ids = barred.choices[0].token_ids
    assert len(set(ids)) == len(ids)


async def send(base_url: str, method: str, path: str, **more: Any) -> tuple[int, Any]:
    headers = {"authorization": f"Bearer {KEY}"}
    async with httpx.AsyncClient(trust_env=False) as plain:
        reply = await plain.request(method, base_url + path, headers=headers, **more)
    return reply.status_code, reply.json()


async def test_a_body_that_is_no_json_is_refused_in_openai_s_shape(base_url: str) -> None:
    status, body = await send(base_url, "POST", "/chat/completions", content=b"{")

    assert (status, body["error"]["type"]) == (400, "invalid_request_error")
    assert "Invalid JSON" in body["error"]["message"]


async def test_an_unknown_path_is_refused_in_openai_s_shape(base_url: str) -> None:
    status, body = await send(base_url, "POST", "/embeddings")

    assert (status, body["error"]["code"]) == (404, "not_found")
    assert body["error"]["message"] == "POST /v1/embeddings is not served here"


@pytest.mark.parametrize(
    ("method", "path", "takes"), [("GET", "/chat/completions", "POST"), ("DELETE", "/models", "GET, HEAD")]
)
async def test_a_wrong_method_is_refused_with_the_right_one(
    base_url: str, method: str, path: str, takes: str
) -> None:
    status, body = await send(base_url, method, path)

    assert (status, body["error"]["code"]) == (405, "method_not_allowed")
    assert body["error"]["message"] == f"{method} /v1{path} is not served here; it takes {takes}"


async def test_a_body_that_is_too_large_is_not_parsed(base_url: str) -> None:
    status, body = await send(base_url, "POST", "/chat/completions", content=b" " * (8 * 2**20 + 1))

    assert (status, body["error"]["type"]) == (413, "invalid_request_error")


async def test_health_needs_no_key(base_url: str) -> None:
    async with httpx.AsyncClient(trust_env=False) as plain:
        reply = await plain.get(base_url.removesuffix("/v1") + "/health")

    assert reply.json() == {"status": "ok", "policy_version": 3}


async def test_a_closed_engine_is_an_error_in_openai_s_shape() -> None:
    engine = Engine(tiny_model())
    server = LocalServer(Endpoint(engine, lambda: ["tiny"], api_key=KEY).app())
    engine.close()
    try:
        async with client_of(server.base_url) as client:
            error = await refusal(client)
    finally:
        server.close()

    assert error.status_code == 503
    assert "the engine is closed" in str(error)


async def test_a_closed_server_no_longer_answers() -> None:
    engine = Engine(tiny_model())
    server = LocalServer(Endpoint(engine, lambda: ["tiny"], api_key=KEY).app())
    base_url = server.base_url
    server.close()
    engine.close()

    async with client_of(base_url) as client:
        with pytest.raises(openai.APIConnectionError):
            await ask(client)
