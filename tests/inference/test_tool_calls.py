"""Tool calls in what a model wrote."""

from __future__ import annotations

import json

import pytest

from groundrule.inference.reply import completion
from groundrule.inference.schema import ChatCompletionBody
from groundrule.inference.tool_calls import parse_tool_calls
from groundrule.models.sampling import Sample

TOOLS = [{"type": "function", "function": {"name": n, "parameters": {}}} for n in ("find", "book")]
FIND = '{"name": "find", "arguments": {"day": "Monday"}}'
BOOK = '{"name": "book", "arguments": {"id": 7}}'


def found(text: str) -> list[tuple[str, dict]]:
    return [(call.name, json.loads(call.arguments)) for call in parse_tool_calls(text, TOOLS).calls]


@pytest.mark.parametrize(
    "text",
    [
        f"<tool_call>\n{FIND}\n</tool_call>",
        f"<tool_call>{FIND}</tool_call>",
        FIND,
        f"  {FIND}\n",
        f"```json\n{FIND}\n```",
        f"[{FIND}]",
        '{"name": "find", "parameters": {"day": "Monday"}}',
        '{"type": "function", "function": {"name": "find", "arguments": "{\\"day\\": \\"Monday\\"}"}}',
    ],
)
def test_a_call_is_read_however_models_write_it(text):
    assert found(text) == [("find", {"day": "Monday"})]
    assert parse_tool_calls(text, TOOLS).content is None


def test_several_calls_keep_their_order_and_have_ids_of_their_own():
    text = f"<tool_call>{FIND}</tool_call>\n<tool_call>{BOOK}</tool_call>"
    parsed = parse_tool_calls(text, TOOLS)
    assert [call.name for call in parsed.calls] == ["find", "book"]
    assert len({call.id for call in parsed.calls}) == 2
    assert [call.as_message_part(i)["index"] for i, call in enumerate(parsed.calls)] == [0, 1]


def test_text_around_tagged_calls_stays_text():
    parsed = parse_tool_calls(f"Let me look.\n<tool_call>{FIND}</tool_call>", TOOLS)
    assert parsed.content == "Let me look."


@pytest.mark.parametrize(
    "text",
    [
        "No call at all.",
        '<tool_call>{"name": "find", "argum',
        f"<tool_call>{FIND}</tool_call><tool_call>{{",
        '<tool_call>{"name": "pay", "arguments": {}}</tool_call>',
        f"Here is how you would call it: {FIND}",
        '{"name": "find", "arguments": ["Monday"]}',
        '{"name": "find", "arguments": "not json"}',
        '{"answer": 42}',
        "[1, 2]",
        "[" * 100_000,
    ],
)
def test_what_is_no_complete_call_of_an_offered_tool_stays_text(text):
    parsed = parse_tool_calls(text, TOOLS)
    assert (parsed.content, parsed.calls) == (text, [])


def test_a_call_without_arguments_has_an_empty_object():
    assert found('<tool_call>{"name": "find"}</tool_call>') == [("find", {})]


def choice_of(text: str, finish_reason: str = "stop", **more: object) -> dict:
    body = ChatCompletionBody.model_validate(
        {"model": "m", "messages": [{"role": "user", "content": "Book it."}], "tools": TOOLS, **more}
    )
    sample = Sample(text=text, finish_reason=finish_reason)
    return completion(body, [1], [sample], tokenizer=None, version=0)["choices"][0]


def test_a_reply_with_a_call_ends_with_tool_calls():
    choice = choice_of(f"<tool_call>{FIND}</tool_call>")
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] is None
    assert choice["message"]["tool_calls"][0]["function"]["name"] == "find"


def test_a_call_that_was_cut_stays_text_and_ends_with_length():
    choice = choice_of('<tool_call>{"name": "fi', "length")
    assert choice["finish_reason"] == "length"
    assert "tool_calls" not in choice["message"]


@pytest.mark.parametrize("more", [{"tools": None}, {"tool_choice": "none"}])
def test_without_tools_on_offer_nothing_is_looked_for(more):
    choice = choice_of(FIND, **more)
    assert choice["message"] == {"role": "assistant", "content": FIND}
    assert choice["finish_reason"] == "stop"
