"""Streams, as the official client and plain HTTP see them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import openai
import pytest
from openai import AsyncOpenAI, DefaultAsyncHttpxClient, DefaultHttpxClient, OpenAI

from groundrule.errors import ModelError, QueueFullError
from groundrule.inference.engine import Engine
from groundrule.inference.stream import AnswerStream
from groundrule.inference.tool_calls import settled
from served import KEY, ScriptedEngine, asking, events, post, served, texts, tool, until
from tiny import END, tiny_model

CALL = '<tool_call>\n{"name": "find", "arguments": {"day": "Monday"}}\n</tool_call>'


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    engine = Engine(tiny_model(), version=3)
    with served(engine) as url:
        yield url
    engine.close()


def chunks_of(said: str, **more: Any) -> list[dict[str, Any]]:
    """The chunks of a stream in which the model says this."""
    with served(ScriptedEngine(said)) as url:
        reply = post(url, asking(stream=True, **more))
    assert reply.headers["content-type"] == "text/event-stream; charset=utf-8"
    whole = events(reply)
    assert whole[-1] == "[DONE]"
    return [json.loads(event) for event in whole[:-1]]


def test_the_role_comes_first_then_the_text_then_the_reason():
    chunks = chunks_of("hey")
    assert [c["choices"][0]["delta"] for c in chunks] == [
        {"role": "assistant", "content": ""},
        {"content": "h"},
        {"content": "e"},
        {"content": "y"},
        {},
    ]
    assert [c["choices"][0]["finish_reason"] for c in chunks] == [None, None, None, None, "stop"]


def test_all_chunks_of_a_stream_have_one_id_and_the_object_of_chunks():
    chunks = chunks_of("hey")
    assert len({c["id"] for c in chunks}) == 1
    assert {c["object"] for c in chunks} == {"chat.completion.chunk"}


def test_a_character_of_several_tokens_comes_whole():
    assert texts(chunks_of("né")) == ["n", "é"]


def test_bytes_of_tokens_join_to_the_text_where_a_token_is_half_a_character():
    chunks = chunks_of("né")
    told = [t for c in chunks for t in (c["choices"][0]["logprobs"] or {"content": []})["content"]]
    assert bytes(byte for token in told[:-1] for byte in token["bytes"]).decode() == "né"


def test_token_ids_of_the_chunks_join_to_the_answer_with_its_end():
    chunks = chunks_of("né")
    ids = [i for c in chunks for i in c["choices"][0]["token_ids"]]
    assert ids == [*tiny_model().tokenizer.encode("né", add_special_tokens=False), END]


def test_the_last_chunk_says_how_the_answer_was_sampled(base_url):
    reply = post(base_url, asking(stream=True, max_tokens=2, temperature=0.5))
    last = json.loads(events(reply)[-2])["choices"][0]
    assert (last["policy_version"], last["sampling"]) == (3, {"temperature": 0.5, "top_p": 1.0})
    assert last["prompt_token_ids"] == tiny_model().renderer.prompt_ids([{"role": "user", "content": "Hi"}])


def test_usage_comes_last_where_it_is_asked_for():
    chunks = chunks_of("hey", stream_options={"include_usage": True})
    assert [c["usage"] for c in chunks[:-1]] == [None] * (len(chunks) - 1)
    assert (chunks[-1]["choices"], chunks[-1]["usage"]["completion_tokens"]) == ([], 4)


def test_usage_does_not_come_unasked():
    assert [c for c in chunks_of("hey") if "usage" in c] == []


def test_several_answers_share_a_stream_by_their_index():
    with served(ScriptedEngine("ab", "cd")) as url:
        chunks = [json.loads(e) for e in events(post(url, asking(stream=True, n=2)))[:-1]]
    assert ("".join(texts(chunks, 0)), "".join(texts(chunks, 1))) == ("ab", "cd")


def test_a_stream_says_what_the_whole_reply_says(base_url):
    question = asking(max_tokens=12, temperature=0, n=1)
    whole = post(base_url, question).json()["choices"][0]
    chunks = [json.loads(e) for e in events(post(base_url, {**question, "stream": True}))[:-1]]
    assert "".join(texts(chunks)) == whole["message"]["content"]
    assert [i for c in chunks for i in c["choices"][0]["token_ids"]] == whole["token_ids"]
    assert chunks[-1]["choices"][0]["finish_reason"] == whole["finish_reason"]


def test_text_before_a_call_is_streamed_and_the_call_comes_in_one_piece():
    chunks = chunks_of(f"Let me see.\n{CALL}", tools=[tool("find", day={"type": "string"})])
    calls = [call for c in chunks for call in c["choices"][0]["delta"].get("tool_calls", [])]
    assert "".join(texts(chunks)) == "Let me see."
    assert [(c["index"], c["function"]["name"], c["function"]["arguments"]) for c in calls] == [
        (0, "find", '{"day": "Monday"}')
    ]
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


@pytest.mark.parametrize(
    "said", ["a < b", "<tool_cat>", "[1] a source", "```python\nx\n```", '{"answer": 1}']
)
def test_what_looked_like_a_call_and_is_none_comes_as_text(said):
    assert "".join(texts(chunks_of(said, tools=[tool("find")]))) == said


@pytest.mark.parametrize(
    ("text", "sure"),
    [
        ("Hello", "Hello"),
        ("Hello <", "Hello"),
        ("Hello <tool_c", "Hello"),
        ("Hello <tools", "Hello <tools"),
        ("Hello <tool_call>{", "Hello"),
        ('{"na', ""),
        ("[{", ""),
        ("[1", "[1"),
        ("```js", ""),
        ("```python", "```python"),
        ("```json\n{", ""),
        (" \n", ""),
        ("{x", "{x"),
    ],
)
def test_what_may_be_a_call_is_held_back(text, sure):
    assert settled(text) == sure


def test_calls_are_text_where_no_tools_are_offered():
    assert "".join(texts(chunks_of(CALL))) == CALL


def test_parallel_calls_switched_off_leave_the_first():
    chunks = chunks_of(f"{CALL}\n{CALL}", tools=[tool("find")], parallel_tool_calls=False)
    calls = [call for c in chunks for call in c["choices"][0]["delta"].get("tool_calls", [])]
    assert len(calls) == 1


def sync_client(base_url: str) -> OpenAI:
    return OpenAI(
        base_url=base_url, api_key=KEY, max_retries=0, http_client=DefaultHttpxClient(trust_env=False)
    )


def test_the_official_client_reads_a_stream(base_url):
    with sync_client(base_url) as client:
        stream = client.chat.completions.create(**asking(stream=True, max_tokens=4))
        chunks = list(stream)
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[-1].choices[0].finish_reason in ("stop", "length")


async def test_the_official_async_client_reads_a_stream(base_url):
    http = DefaultAsyncHttpxClient(trust_env=False)
    async with AsyncOpenAI(base_url=base_url, api_key=KEY, max_retries=0, http_client=http) as client:
        stream = await client.chat.completions.create(**asking(stream=True, max_tokens=4))
        chunks = [chunk async for chunk in stream]
    assert chunks[-1].choices[0].finish_reason in ("stop", "length")


def test_the_official_client_s_accumulated_stream_has_the_calls():
    with served(ScriptedEngine(f"{CALL}\n{CALL}")) as url, sync_client(url) as client:
        body = asking(tools=[tool("find", day={"type": "string"})])
        with client.chat.completions.stream(**body) as stream:
            choice = stream.get_final_completion().choices[0]
    assert [call.function.arguments for call in choice.message.tool_calls] == ['{"day": "Monday"}'] * 2
    assert choice.finish_reason == "tool_calls"


def test_a_failure_in_the_middle_is_an_event_of_the_stream():
    engine = ScriptedEngine("hey")
    engine.failure = ModelError("out of memory")
    with served(engine) as url:
        reply = post(url, asking(stream=True))
    error = json.loads(events(reply)[-2])["error"]
    assert (error["message"], error["type"]) == ("out of memory", "server_error")


def test_the_official_client_raises_the_failure_of_a_stream():
    engine = ScriptedEngine("hey")
    engine.failure = ModelError("out of memory")
    with served(engine) as url, sync_client(url) as client, pytest.raises(openai.APIError) as caught:
        list(client.chat.completions.create(**asking(stream=True)))
    assert "out of memory" in str(caught.value)


def test_a_full_queue_is_refused_before_the_stream_begins(monkeypatch):
    engine = ScriptedEngine("hey")

    def full(job: object) -> None:
        raise QueueFullError("64 answers wait; ask again later")

    monkeypatch.setattr(engine, "submit", full)
    with served(engine) as url:
        reply = post(url, asking(stream=True))
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "1")
    assert reply.json()["error"]["type"] == "rate_limit_error"


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_client_that_leaves_frees_its_place(stream):
    pause = threading.Event()
    engine = ScriptedEngine("a long answer", pause=pause)
    headers = {"authorization": f"Bearer {KEY}"}
    try:
        with served(engine) as url, httpx.Client(trust_env=False) as client:
            with pytest.raises(httpx.ReadTimeout):
                client.post(
                    f"{url}/chat/completions", json=asking(stream=stream), headers=headers, timeout=0.5
                )
            until(lambda: bool(engine.jobs) and engine.jobs[0].future.cancelled(), "cancelling")
    finally:
        pause.set()


async def test_a_client_that_left_before_the_first_event_frees_its_place():
    over: list[bool] = []

    async def nothing() -> Any:
        return {"type": "http.disconnect"}

    async def event_stream() -> Any:
        yield b"never taken"

    stream = AnswerStream(event_stream(), on_over=lambda: over.append(True))
    await stream({"type": "http", "asgi": {"spec_version": "2.3"}}, nothing, lambda message: asyncio.sleep(1))
    assert over == [True]


def test_the_first_token_comes_before_the_answer_is_finished():
    pause = threading.Event()
    headers = {"authorization": f"Bearer {KEY}"}
    with served(ScriptedEngine("ab", pause=pause)) as url, httpx.Client(trust_env=False) as client:
        body = asking(stream=True)
        with client.stream("POST", f"{url}/chat/completions", json=body, headers=headers) as reply:
            lines = (line.removeprefix("data: ") for line in reply.iter_lines() if line)
            next(lines)
            first = json.loads(next(lines))
            pause.set()
            rest = list(lines)
    assert (first["choices"][0]["delta"], rest[-1]) == ({"content": "a"}, "[DONE]")
