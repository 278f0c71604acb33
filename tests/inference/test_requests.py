"""What a request may say, what becomes of it, and what is refused."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from groundrule.inference.engine import Engine
from groundrule.inference.errors import RequestError
from groundrule.inference.messages import readable_messages
from served import KEY, ScriptedEngine, asking, post, served, until
from tiny import END, tiny_model


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    engine = Engine(tiny_model(), seed=1)
    with served(engine) as url:
        yield url
    engine.close()


def refused(base_url: str, **more: Any) -> tuple[int, str | None, str]:
    reply = post(base_url, asking(**more))
    error = reply.json()["error"]
    return reply.status_code, error["param"], error["message"]


@pytest.mark.parametrize(
    ("more", "param", "said"),
    [
        ({"temprature": 0.5}, "temprature", "did you mean 'temperature'?"),
        ({"reasoning_effort": "high"}, "reasoning_effort", "is not supported by this endpoint; leave it out"),
        ({"modalities": ["text", "audio"]}, "modalities", "is not supported"),
        ({"function_call": "auto"}, "function_call", "send 'tool_choice' in its place"),
        ({"temperature": "hot"}, "temperature", "valid number"),
        ({"temperature": 3}, "temperature", "less than or equal to 2"),
        ({"n": 1.5}, "n", "valid integer"),
        ({"max_tokens": True}, "max_tokens", "valid integer"),
        ({"stream": "yes"}, "stream", "valid boolean"),
        ({"top_logprobs": 21}, "top_logprobs", "less than or equal to 20"),
        ({"stop": ["a", "b", "c", "d", "e"]}, "stop", "at most 4"),
        ({"stop": 7}, "stop", "valid string"),
        ({"logit_bias": {"a": 1}}, "logit_bias", "must be a token id"),
        ({"logit_bias": {"5": 101}}, "logit_bias", "from -100 to 100"),
        ({"logit_bias": {"260": 1}}, "logit_bias", "260 is no token of this model (0 to 259)"),
        ({"messages": "hi"}, "messages", "valid array"),
    ],
)
def test_a_parameter_that_is_not_taken_is_refused_by_name(base_url, more, param, said):
    status, named, message = refused(base_url, **more)
    assert (status, named) == (400, param)
    assert said in message


def test_a_missing_field_is_named(base_url):
    reply = post(base_url, {"messages": []})
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "model")


def test_parameters_that_change_no_answer_are_taken(base_url):
    harmless = {
        "user": "u",
        "store": True,
        "metadata": {"a": "b"},
        "service_tier": "auto",
        "safety_identifier": "s",
    }
    reply = post(base_url, asking(max_tokens=1, modalities=["text"], return_token_ids=True, **harmless))
    assert reply.status_code == 200


def test_a_bias_decides_the_token(base_url):
    choice = post(base_url, asking(max_tokens=2, logit_bias={"40": 100})).json()["choices"][0]
    assert choice["token_ids"] == [40, 40]


def test_the_likeliest_tokens_are_told_where_they_are_asked_for(base_url):
    reply = post(base_url, asking(max_tokens=1, temperature=0, logprobs=True, top_logprobs=3))
    [token] = reply.json()["choices"][0]["logprobs"]["content"]
    assert len(token["top_logprobs"]) == 3
    assert token["top_logprobs"][0]["logprob"] == pytest.approx(token["logprob"])


def test_without_a_limit_an_answer_gets_what_the_context_leaves(base_url):
    """511 of 512 tokens are prompt, so one is left of the default limit of 256."""
    empty = len(tiny_model().renderer.prompt_ids([{"role": "user", "content": ""}]))
    long = {"role": "user", "content": "x" * (511 - empty)}
    choice = post(base_url, asking(long, logit_bias={"40": 100})).json()["choices"][0]
    assert (len(choice["token_ids"]), choice["finish_reason"]) == (1, "length")


def test_a_lower_context_limit_holds():
    engine = ScriptedEngine("hi")
    with served(engine, context_tokens=10) as url:
        status, _, message = refused(url)
    assert (status, message.startswith("the model reads at most 10 tokens")) == (400, True)


def test_a_body_of_unknown_length_is_refused_once_it_is_too_large(base_url):
    reply = post(base_url, (b" " * (1 << 20) for _ in range(16)))
    assert (reply.status_code, reply.json()["error"]["type"]) == (413, "invalid_request_error")


@pytest.mark.parametrize(
    ("body", "said"), [(b"{", "Invalid JSON"), (b"[1]", "object"), (b"\xff", "Invalid JSON")]
)
def test_a_body_that_is_no_json_object_is_refused(base_url, body, said):
    reply = post(base_url, body)
    assert (reply.status_code, said in reply.json()["error"]["message"]) == (400, True)


def test_one_model_is_described_by_its_name(base_url):
    reply = httpx.get(f"{base_url}/models/tiny", headers={"authorization": f"Bearer {KEY}"}, trust_env=False)
    assert reply.json() == {"id": "tiny", "object": "model", "created": 0, "owned_by": "groundrule"}


def test_without_a_key_everybody_on_this_machine_is_answered():
    with served(ScriptedEngine("hi"), api_key=None) as url:
        reply = httpx.post(f"{url}/chat/completions", json=asking(), trust_env=False)
    assert reply.json()["choices"][0]["message"]["content"] == "hi"


def test_without_a_key_a_request_to_another_host_name_is_refused():
    """A web page whose name was pointed at this machine could read along otherwise."""
    with served(ScriptedEngine("hi"), api_key=None) as url:
        reply = httpx.get(f"{url}/models", headers={"host": "pages.example"}, trust_env=False)
    assert (reply.status_code, reply.json()["error"]["code"]) == (403, "host_not_allowed")


def test_a_key_may_hold_dots():
    with served(ScriptedEngine("hi"), api_key="a.b.7") as url:
        reply = httpx.get(f"{url}/models", headers={"authorization": "Bearer a.b.7"}, trust_env=False)
    assert reply.status_code == 200


def test_metrics_count_requests_and_tokens():
    engine = Engine(tiny_model())
    headers = {"authorization": f"Bearer {KEY}"}
    with served(engine) as url:
        post(url, asking(max_tokens=1))
        post(url, asking(max_tokens=1))
        post(url, asking(n=0))
        page = httpx.get(f"{url.removesuffix('/v1')}/metrics", headers=headers, trust_env=False).text
    engine.close()
    values = dict(line.rsplit(" ", 1) for line in page.splitlines() if not line.startswith("#"))
    assert values['groundrule_requests_total{status="200"}'] == "2.0"
    assert values['groundrule_requests_total{status="400"}'] == "1.0"
    assert values["groundrule_sampled_tokens_total"] == "2.0"
    assert float(values["groundrule_cached_tokens_total"]) > 0
    assert values["groundrule_time_to_first_token_seconds_count"] == "2.0"
    assert values["groundrule_waiting_rows"] == "0.0"


def test_metrics_need_the_key():
    with served(ScriptedEngine("hi")) as url:
        assert httpx.get(f"{url.removesuffix('/v1')}/metrics", trust_env=False).status_code == 401


def test_metrics_count_clients_that_left():
    pause = threading.Event()
    engine = ScriptedEngine("long", pause=pause)
    headers = {"authorization": f"Bearer {KEY}"}
    with served(engine) as url, httpx.Client(trust_env=False, headers=headers) as client:
        with pytest.raises(httpx.ReadTimeout):
            client.post(f"{url}/chat/completions", json=asking(), timeout=0.3)
        pages = f"{url.removesuffix('/v1')}/metrics"
        until(lambda: 'requests_total{status="499"} 1.0' in client.get(pages).text, "counting")
        pause.set()


def test_a_real_queue_that_is_full_refuses():
    engine = Engine(tiny_model(), max_rows=1, max_waiting=2)
    with served(engine) as url:
        reply = post(url, asking(n=3, max_tokens=1))
    engine.close()
    assert (reply.status_code, reply.json()["error"]["code"]) == (429, "queue_full")


def test_calls_and_results_of_the_old_form_become_tool_messages():
    old = [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "1"},
    ]
    call, result = readable_messages(old)
    assert call["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}
    assert (result["role"], result["tool_call_id"]) == ("tool", call["tool_calls"][0]["id"])


@pytest.mark.parametrize(
    ("message", "place"),
    [
        ({"role": "user", "content": [{"type": "text"}]}, "messages[0].content[0]"),
        ({"role": "user", "content": [{"type": "text", "text": "a"}, "b"]}, "messages[0].content[1]"),
        ({"role": "user", "content": [{"type": "input_audio", "input_audio": {}}]}, "messages[0].content[0]"),
        ({"role": "user", "content": 7}, "messages[0].content"),
        ({"role": "assistant", "audio": {"id": "a"}}, "messages[0].audio"),
        ({"role": "assistant", "tool_calls": [{"id": "a"}]}, "messages[0].tool_calls[0]"),
        ({"role": "assistant", "tool_calls": ["a"]}, "messages[0].tool_calls[0]"),
    ],
)
def test_what_cannot_be_read_is_refused_by_its_place(message, place):
    with pytest.raises(RequestError) as caught:
        readable_messages([message])
    assert caught.value.param == place


def test_a_refusal_that_is_sent_back_is_the_text_of_its_turn():
    [message] = readable_messages([{"role": "assistant", "content": None, "refusal": "I may not."}])
    assert message == {"role": "assistant", "content": "I may not."}


def test_the_end_token_is_among_the_ids_and_not_in_the_text(base_url):
    choice = post(base_url, asking(logit_bias={str(END): 100})).json()["choices"][0]
    assert (choice["token_ids"], choice["message"]["content"]) == ([END], "")


def test_replies_are_strict_json(base_url):
    reply = post(base_url, asking(max_tokens=2))
    json.loads(reply.text, parse_constant=pytest.fail)
