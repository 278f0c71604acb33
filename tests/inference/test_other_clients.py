"""The endpoint as LangChain and curl see it."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.tools import tool as langchain_tool
from langchain_openai import ChatOpenAI
from pydantic import BaseModel, Field

from groundrule.inference.engine import Engine
from served import KEY, ScriptedEngine, asking, served
from tiny import tiny_model

CALL = '<tool_call>\n{"name": "find", "arguments": {"day": "Monday"}}\n</tool_call>'


@pytest.fixture(scope="module")
def base_url() -> Iterator[str]:
    engine = Engine(tiny_model())
    with served(engine) as url:
        yield url
    engine.close()


@pytest.fixture(autouse=True)
def no_tracing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LANGSMITH_TRACING", "LANGCHAIN_TRACING_V2"):
        monkeypatch.setenv(name, "false")


def langchain(base_url: str, **more: Any) -> ChatOpenAI:
    return ChatOpenAI(model="tiny", base_url=base_url, api_key=KEY, max_retries=0, **more)


@langchain_tool
def find(day: str) -> str:
    """What happens on a day."""
    return day


class Visit(BaseModel):
    """A visit."""

    day: str = Field(max_length=4)
    guests: int = Field(ge=0, le=9)


def test_langchain_gets_an_answer():
    with served(ScriptedEngine("Hello.")) as url:
        message = langchain(url).invoke("Hi")
    assert message.content == "Hello."
    assert message.response_metadata["finish_reason"] == "stop"


def test_langchain_reads_a_stream():
    with served(ScriptedEngine("Hello.")) as url:
        pieces = list(langchain(url).stream("Hi"))
    assert "".join(str(piece.content) for piece in pieces) == "Hello."


async def test_langchain_reads_a_stream_asynchronously_with_usage():
    with served(ScriptedEngine("Hello.")) as url:
        pieces = [piece async for piece in langchain(url, stream_usage=True).astream("Hi")]
    assert sum((piece.usage_metadata or {}).get("output_tokens", 0) for piece in pieces) == 7


def test_langchain_gets_the_calls_of_bound_tools():
    with served(ScriptedEngine(CALL)) as url:
        message = langchain(url).bind_tools([find]).invoke("Monday?")
    assert [(c["name"], c["args"]) for c in message.tool_calls] == [("find", {"day": "Monday"})]


def test_langchain_gets_the_calls_in_a_stream():
    with served(ScriptedEngine(f"{CALL}\n{CALL}")) as url:
        pieces = list(langchain(url).bind_tools([find]).stream("Monday?"))
    whole = pieces[0]
    for piece in pieces[1:]:
        whole += piece
    assert [(c["name"], c["args"]) for c in whole.tool_calls] == [("find", {"day": "Monday"})] * 2


def test_langchain_sends_a_result_back():
    with served(ScriptedEngine("It rains.")) as url:
        chat = langchain(url).bind_tools([find])
        call = {"name": "find", "args": {"day": "Monday"}, "id": "call_1", "type": "tool_call"}
        history = [("user", "Monday?"), ("ai", ""), ("user", "And?")]
        from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

        history = [
            HumanMessage("Monday?"),
            AIMessage("", tool_calls=[call]),
            ToolMessage("Rain", tool_call_id="call_1"),
        ]
        assert chat.invoke(history).content == "It rains."


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_langchain_gets_structured_output_from_a_random_model(base_url, method):
    chat = langchain(base_url, max_tokens=200, seed=1).with_structured_output(Visit, method=method)
    visit = chat.invoke("Who comes?")
    assert isinstance(visit, Visit)
    assert visit.guests in range(10)


def curl(*arguments: str) -> str:
    """What curl prints, without a proxy or a configuration of the user's."""
    program = shutil.which("curl")
    if program is None:
        pytest.skip("curl is not installed")
    command = [program, "--disable", "--silent", "--noproxy", "*", "--max-time", "20", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_curl_gets_an_answer_without_a_key_or_a_content_type():
    with served(ScriptedEngine("Hello."), api_key=None) as url:
        said = json.loads(curl(f"{url}/chat/completions", "-d", json.dumps(asking())))
    assert said["choices"][0]["message"]["content"] == "Hello."


def test_curl_reads_a_stream():
    with served(ScriptedEngine("Hi."), api_key=None) as url:
        said = curl("-N", f"{url}/chat/completions", "-d", json.dumps(asking(stream=True)))
    assert said.startswith('data: {"id": "chatcmpl-')
    assert said.endswith("data: [DONE]\n\n")
