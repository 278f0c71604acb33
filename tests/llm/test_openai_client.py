"""The OpenAI-compatible client against a real HTTP server on the loopback interface."""

import logging
import subprocess
import sys
from dataclasses import replace

import pytest

from fakes import completion, fake_openai, group_of, refusal_of, scores_json
from groundrule._util.aio import run_sync
from groundrule.data import ChatRequest
from groundrule.errors import ConfigError, DeadlineError, LlmError, ProviderError
from groundrule.llm import Ledger, OpenAIClient, Retry, use_ledger
from groundrule.rewards import ruler_score_group


def request(model: str = "m", **params) -> ChatRequest:
    return ChatRequest(model=model, messages=({"role": "user", "content": "hi"},), params=params)


class Waits:
    """Stands in for `asyncio.sleep` and keeps what it was asked."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)


def client_of(server, waits: Waits | None = None, **retry) -> OpenAIClient:
    policy = Retry(sleep=waits or Waits(), draw=lambda: 1.0, **retry)
    return OpenAIClient(base_url=server.base_url, api_key="sk-secret", retry=policy)


async def test_a_reply_is_read_whole():
    usage = {
        "prompt_tokens": 100,
        "completion_tokens": 7,
        "total_tokens": 107,
        "prompt_tokens_details": {"cached_tokens": 64},
    }
    body = completion("hello", usage=usage, reasoning_content="thought", finish_reason="length")
    with fake_openai((200, {}, body)) as server:
        reply = await client_of(server).complete(request(temperature=0.5, top_k=3))
    assert (reply.content, reply.reasoning, reply.finish_reason) == ("hello", "thought", "length")
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens, reply.usage.cached_tokens) == (
        100,
        7,
        64,
    )
    assert reply.model == "fake-model"
    assert server.requests[0] == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "temperature": 0.5,
        "top_k": 3,
    }
    assert server.headers[0]["authorization"] == "Bearer sk-secret"


async def test_a_refusal_is_read():
    with fake_openai((200, {}, completion(None, refusal="no"))) as server:
        reply = await client_of(server).complete(request())
    assert (reply.content, reply.refusal) == (None, "no")


async def test_content_in_parts_is_joined():
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    with fake_openai((200, {}, completion(parts))) as server:
        assert (await client_of(server).complete(request())).content == "ab"


async def test_a_small_retry_after_is_waited_for_exactly():
    waits = Waits()
    with fake_openai((429, {"Retry-After": "5"}, {}), (200, {}, completion())) as server:
        await client_of(server, waits).complete(request())
        assert (waits.seconds, len(server.requests)) == ([5], 2)


async def test_a_huge_retry_after_is_capped():
    waits = Waits()
    with fake_openai((429, {"Retry-After": "86400"}, {}), (200, {}, completion())) as server:
        await client_of(server, waits).complete(request())
    assert waits.seconds == [60]


async def test_server_errors_are_retried_with_doubling_waits():
    waits = Waits()
    failures = [(status, {}, {"error": {"message": "x"}}) for status in (500, 503, 408, 409)]
    with fake_openai(*failures, (200, {}, completion())) as server:
        await client_of(server, waits).complete(request())
    assert waits.seconds == [0.5, 1.0, 2.0, 4.0]


async def test_a_used_up_quota_is_not_retried():
    body = {"error": {"message": "quota", "code": "insufficient_quota"}}
    with fake_openai((429, {}, body)) as server:
        with pytest.raises(ProviderError) as caught:
            await client_of(server).complete(request())
        assert len(server.requests) == 1
    assert (caught.value.status, caught.value.code) == (429, "insufficient_quota")


async def test_a_client_error_names_model_host_and_remedy_and_never_the_key(caplog):
    caplog.set_level(logging.INFO, logger="groundrule")
    body = {"error": {"message": "Incorrect API key provided", "code": "invalid_api_key"}}
    with fake_openai((401, {}, body)) as server:
        with pytest.raises(ProviderError) as caught:
            await client_of(server).complete(request("judge-7"))
        host = server.base_url.removeprefix("http://").removesuffix("/v1")
    text = str(caught.value)
    assert "judge-7" in text and host in text and "check the key in OPENAI_API_KEY" in text
    assert "sk-secret" not in text + caplog.text


async def test_retries_end_with_the_last_error():
    with fake_openai((503, {}, {"error": {"message": "overloaded"}})) as server:
        with pytest.raises(ProviderError, match="503: overloaded"):
            await client_of(server, attempts=3).complete(request())
        assert len(server.requests) == 3


async def test_an_unreachable_server_is_named():
    client = OpenAIClient(
        base_url="http://127.0.0.1:9/v1", api_key="k", retry=Retry(attempts=2, sleep=Waits())
    )
    with pytest.raises(LlmError, match=r"m at 127\.0\.0\.1:9 cannot be reached"):
        await client.complete(request())


async def test_credentials_in_a_url_are_not_shown():
    client = OpenAIClient(base_url="http://user:pass@127.0.0.1:9/v1", api_key="k", attempts=1)
    with pytest.raises(LlmError) as caught:
        await client.complete(request())
    assert "pass" not in str(caught.value)


async def test_an_answer_that_is_not_json_is_an_error_with_a_remedy():
    html = b"<html>welcome</html>"
    with fake_openai((200, {}, html)) as server, pytest.raises(LlmError, match="OpenAI-compatible"):
        await client_of(server).complete(request())


async def test_an_answer_without_choices_is_an_error():
    empty = {**completion(), "choices": []}
    with fake_openai((200, {}, empty)) as server, pytest.raises(LlmError, match="without any choice"):
        await client_of(server).complete(request())


async def test_the_deadline_holds_over_all_attempts():
    with fake_openai((429, {"Retry-After": "50"}, {"error": {"message": "slow down"}})) as server:
        with pytest.raises(DeadlineError, match="slow down"):
            await client_of(server, deadline_s=10).complete(request())
        assert len(server.requests) == 1


async def test_a_refused_parameter_is_dropped_once_and_remembered():
    script = [(400, {}, refusal_of("top_k")), (200, {}, completion())]
    with fake_openai(*script) as server:
        client = client_of(server)
        for _ in range(2):
            await client.complete(request(top_k=3, seed=1))
        assert [sorted(set(body) - {"model", "messages"}) for body in server.requests] == [
            ["seed", "top_k"],
            ["seed"],
            ["seed"],
        ]


async def test_a_refused_token_limit_is_renamed():
    with fake_openai((400, {}, refusal_of("max_tokens")), (200, {}, completion())) as server:
        await client_of(server).complete(request(max_tokens=9))
        assert server.requests[1]["max_completion_tokens"] == 9
        assert "max_tokens" not in server.requests[1]


async def test_an_unsupported_value_drops_the_parameter():
    body = refusal_of("temperature", code="unsupported_value")
    with fake_openai((400, {}, body), (200, {}, completion())) as server:
        await client_of(server).complete(request(temperature=0.2))
        assert "temperature" not in server.requests[1]


async def test_a_server_without_json_schemas_gets_a_plain_request():
    body = {
        "error": {"message": "This response_format type is unavailable now", "code": "invalid_request_error"}
    }
    with fake_openai((400, {}, body), (200, {}, completion())) as server:
        await client_of(server).complete(request(response_format={"type": "json_schema"}))
        assert "response_format" not in server.requests[1]


async def test_only_one_parameter_is_taken_out_per_call():
    with fake_openai((400, {}, refusal_of("a")), (400, {}, refusal_of("b"))) as server:
        with pytest.raises(ProviderError):
            await client_of(server).complete(request(a=1, b=2))
        assert len(server.requests) == 2


async def test_a_bad_request_about_something_else_is_not_sent_again():
    body = {"error": {"message": "context length exceeded", "code": "context_length_exceeded"}}
    with fake_openai((400, {}, body)) as server:
        with pytest.raises(ProviderError, match="context length exceeded"):
            await client_of(server).complete(request(temperature=1))
        assert len(server.requests) == 1


async def test_reasoning_models_get_no_temperature_and_their_own_token_limit():
    with fake_openai((200, {}, completion())) as server:
        await client_of(server).complete(request("o3", temperature=0, max_tokens=9, seed=1))
        assert server.requests[0].keys() == {"model", "messages", "max_completion_tokens", "seed"}


async def test_half_a_surrogate_pair_can_be_sent():
    with fake_openai((200, {}, completion())) as server:
        message = {"role": "user", "content": "x\ud835y"}
        await client_of(server).complete(replace(request(), messages=(message,)))
        assert server.requests[0]["messages"][0]["content"] == "x?y"


async def test_streaming_is_refused():
    with fake_openai((200, {}, completion())) as server, pytest.raises(ConfigError, match="stream=True"):
        await client_of(server).complete(request(stream=True))


async def test_address_and_key_are_read_from_the_environment_at_each_call(monkeypatch):
    client = OpenAIClient(attempts=1)
    with fake_openai((200, {}, completion())) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-late")
        await client.complete(request())
        assert server.headers[0]["authorization"] == "Bearer sk-late"


async def test_a_missing_key_names_the_variable(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        await OpenAIClient().complete(request())


def test_one_client_works_in_several_event_loops():
    with fake_openai((200, {}, completion())) as server:
        client = client_of(server)
        assert [run_sync(client.complete(request())).content for _ in range(3)] == ["hello"] * 3


async def test_a_group_is_judged_over_http_and_then_from_the_cache():
    with fake_openai((200, {}, completion(scores_json(0.5, 0.5)))) as server, use_ledger(Ledger()) as ledger:
        for _ in range(2):
            judged = await ruler_score_group(group_of("a", "b"), f"{server.base_url}#judge-1")
            assert judged.rewards == [0.5, 0.5]
        assert len(server.requests) == 1
        assert server.requests[0]["model"] == "judge-1"
        assert server.requests[0]["response_format"]["type"] == "json_schema"
        assert "authorization" not in server.headers[0] or "sk-" not in server.headers[0]["authorization"]
    assert (ledger.total().calls, ledger.total().cache_hits, ledger.total().cost_usd) == (1, 1, None)


async def test_a_judge_called_by_name_remembers_what_its_endpoint_refuses():
    script = [(400, {}, refusal_of("response_format")), (200, {}, completion(scores_json(0.5, 0.5)))]
    with fake_openai(*script) as server:
        for answer in "bcd":
            await ruler_score_group(group_of("a", answer), f"{server.base_url}#judge-1")
        assert ["response_format" in body for body in server.requests] == [True, False, False, False]


async def test_an_error_answer_never_enters_the_cache():
    script = [(429, {}, {"error": {"message": "busy"}}), (200, {}, completion(scores_json(0.5, 0.5)))]
    with fake_openai(*script) as server:
        judge, once = f"{server.base_url}#judge-1", {"num_retries": 0}
        failed = await ruler_score_group(group_of("a", "b"), judge, once, swallow_exceptions=True)
        assert "429" in failed.trajectories[0].unscored
        assert (await ruler_score_group(group_of("a", "b"), judge, once)).rewards == [0.5, 0.5]
        assert len(server.requests) == 2


def test_importing_rewards_and_llm_loads_no_heavy_package():
    program = (
        "import sys, groundrule.llm, groundrule.rewards\n"
        "heavy = {'openai', 'aiohttp', 'httpx', 'httpx2', 'litellm', 'torch', 'transformers', 'sqlite3'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    assert output.strip() == "['sqlite3']"
