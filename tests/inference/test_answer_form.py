"""Answers that must have a form: JSON, or calls of tools, whatever the model would rather say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from groundrule.inference.answer_form import grammar_of
from groundrule.inference.engine import Engine
from groundrule.inference.grammar import grammars_of
from groundrule.inference.schema import ChatCompletionBody
from served import asking, events, post, served, tool
from tiny import END, tiny_model

WORD = {"type": "string", "maxLength": 4}
FIND, BOOK = tool("find", day=WORD), tool("book", id={"type": "integer", "minimum": 0, "maximum": 99})
CALL = '<tool_call>\n{"name": "find", "arguments": {"day": "May"}}\n</tool_call>'
BOOKING = '<tool_call>\n{"name": "book", "arguments": {"id": 7}}\n</tool_call>'


@pytest.fixture(scope="module")
def model() -> Any:
    return tiny_model()


@pytest.fixture(scope="module")
def base_url(model: Any) -> Iterator[str]:
    engine = Engine(model)
    with served(engine) as url:
        yield url
    engine.close()


def way(model: Any, text: str, **more: Any) -> str:
    """How far this answer goes by the grammar of a request: "ends", "goes on", or where it is stopped."""
    grammar = grammar_of(ChatCompletionBody.model_validate(asking(**more)))
    if grammar is None:
        return "free"
    constraint = grammars_of(model).begin(grammar)()
    for place, token in enumerate(model.tokenizer.encode(text, add_special_tokens=False)):
        if not constraint.allowed()[token]:
            return text[place:]
        constraint.take(token)
    return "ends" if constraint.allowed()[END] else "goes on"


def json_schema(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}


@pytest.mark.parametrize(
    ("more", "text", "wanted"),
    [
        ({}, "anything", "free"),
        ({"tools": [FIND]}, "anything", "free"),
        ({"tools": [FIND], "tool_choice": "none"}, "anything", "free"),
        ({"response_format": {"type": "text"}}, "anything", "free"),
        ({"response_format": {"type": "json_object"}}, '{"a": [1, null]}', "ends"),
        ({"response_format": {"type": "json_object"}}, "[1]", "[1]"),
        ({"response_format": {"type": "json_object"}}, '{"a": 1', "goes on"),
        ({"response_format": {"type": "json_object"}}, '{\n  "a": 1\n}', "ends"),
        ({"response_format": {"type": "json_object"}}, "{\n\n", "\n"),
        ({"response_format": json_schema({"enum": ["yes", "no"]})}, '"no"', "ends"),
        ({"response_format": json_schema({"enum": ["yes", "no"]})}, '"nay"', 'ay"'),
        ({"tools": [FIND, BOOK], "tool_choice": "required"}, "I", "I"),
        ({"tools": [FIND, BOOK], "tool_choice": "required"}, CALL, "ends"),
        ({"tools": [FIND, BOOK], "tool_choice": "required"}, f"{CALL}\n{BOOKING}", "ends"),
        ({"tools": [FIND, BOOK], "tool_choice": "required", "parallel_tool_calls": False}, CALL + "\n", "\n"),
        ({"tools": [FIND], "tool_choice": "required"}, CALL.replace("day", "dog"), 'og": "May"}}\n</tool_call>'),
        ({"tools": [FIND, BOOK], "tool_choice": {"type": "function", "function": {"name": "book"}}}, BOOKING, "ends"),
        ({"tools": [FIND, BOOK], "tool_choice": {"type": "function", "function": {"name": "book"}}}, CALL[:24], "fi"),
        ({"tools": [FIND], "parallel_tool_calls": False}, "Just text <b", "ends"),
        ({"tools": [FIND], "parallel_tool_calls": False}, f"So: {CALL}", "ends"),
        ({"tools": [FIND], "parallel_tool_calls": False}, f"So: {CALL} ", " "),
        ({"tools": [FIND], "response_format": {"type": "json_object"}}, CALL, "ends"),
        ({"tools": [FIND], "response_format": {"type": "json_object"}}, "{}", "ends"),
        ({"tools": [FIND], "response_format": {"type": "json_object"}}, "So", "So"),
    ],
)  # fmt: skip
def test_an_answer_goes_as_far_as_its_form_allows(model, more, text, wanted):
    assert way(model, text, **more) == wanted


def test_calls_of_strict_tools_follow_their_schema_and_text_stays_free(model):
    strict = {**FIND, "function": {**FIND["function"], "strict": True}}
    assert way(model, f"Well.\n{CALL}", tools=[strict]) == "ends"
    assert way(model, CALL.replace("May", "Monday"), tools=[strict]) == 'ay"}}\n</tool_call>'


def test_references_inside_the_schema_of_a_tool_hold(model):
    schema = {"type": "object", "properties": {"day": {"$ref": "#/$defs/Day"}}, "$defs": {"Day": WORD}}
    refers = {"type": "function", "function": {"name": "find", "parameters": schema}}
    assert way(model, CALL, tools=[refers], tool_choice="required") == "ends"


def test_arguments_that_a_schema_does_not_list_are_not_invented(model):
    schema = {
        "type": "object",
        "properties": {"day": WORD, "at": {"type": "object", "properties": {"hour": WORD}}},
    }
    open_ended = {"type": "function", "function": {"name": "find", "parameters": schema}}
    stopped = way(model, CALL.replace('"May"', '"May", "x": 1'), tools=[open_ended], tool_choice="required")
    assert stopped.startswith('x": 1')


def test_a_schema_that_is_put_together_from_others_stays_open(model):
    part = {"type": "object", "properties": {"a": WORD}, "required": ["a"]}
    other = {"type": "object", "properties": {"b": WORD}, "required": ["b"]}
    parts = [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}]
    schema = json_schema({"allOf": parts, "$defs": {"A": part, "B": other}})
    assert way(model, '{"a": "x", "b": "y"}', response_format=schema) == "ends"


def test_a_grammar_masks_logits_that_have_no_token(model):
    """Output layers are often padded."""
    grammars = type(grammars_of(model))(model.tokenizer, model.eos_ids, 300)
    allowed = grammars.begin('start: "a"')().allowed()
    assert (allowed.shape, int(allowed.sum())) == ((300,), 1)


@pytest.mark.parametrize("temperature", [0.0, 1.0, 2.0])
def test_a_random_model_answers_by_the_schema(base_url, temperature):
    schema = {
        "type": "object",
        "properties": {"name": WORD, "tags": {"type": "array", "items": WORD, "maxItems": 2}},
        "required": ["name", "tags"],
        "additionalProperties": False,
    }
    body = asking(response_format=json_schema(schema), temperature=temperature, max_tokens=200, seed=1)
    choice = post(base_url, body).json()["choices"][0]
    said = json.loads(choice["message"]["content"])
    assert (sorted(said), choice["finish_reason"]) == (["name", "tags"], "stop")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_random_model_calls_the_tool_that_it_must(base_url, stream):
    choice = {"type": "function", "function": {"name": "book"}}
    body = asking(
        tools=[FIND, BOOK],
        tool_choice=choice,
        parallel_tool_calls=False,
        stream=stream,
        max_tokens=200,
        seed=1,
    )
    reply = post(base_url, body)
    if stream:
        deltas = [json.loads(e)["choices"][0]["delta"] for e in events(reply)[:-1]]
        [call] = [c for delta in deltas for c in delta.get("tool_calls", [])]
    else:
        [call] = reply.json()["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "book"
    assert 0 <= json.loads(call["function"]["arguments"])["id"] <= 99


@pytest.mark.parametrize(
    ("more", "param", "said"),
    [
        ({"response_format": json_schema({"type": "nonsense"})}, "response_format", "Invalid type: nonsense"),
        ({"response_format": json_schema({"not": {"type": "string"}})}, "response_format", 'keys: ["not"]'),
        ({"response_format": {"type": "json_schema"}}, "response_format", "needs 'json_schema'"),
        ({"response_format": {"type": "yaml"}}, "response_format.type", "'json_schema'"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"name": "x"}}},
            "response_format.json_schema.schema",
            "Field required",
        ),
        (
            {"tools": [tool("find", day={"type": "wrong"})], "tool_choice": "required"},
            "tools",
            "Invalid type",
        ),
        ({"tools": [tool("find me")]}, "tools[0].function.name", "'find me' is no function name"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type", "'function'"),
        ({"tools": [{"type": "function"}]}, "tools[0].function", "Field required"),
        ({"tool_choice": "required"}, "tool_choice", "'required' needs tools"),
        ({"tools": [FIND], "tool_choice": "any"}, "tool_choice", "'auto', 'none' or 'required'"),
        (
            {"tools": [FIND], "tool_choice": {"type": "function", "function": {"name": "book"}}},
            "tool_choice",
            "'book' is not among the tools",
        ),
    ],
)
def test_a_form_that_cannot_be_kept_is_refused_by_its_place(base_url, more, param, said):
    reply = post(base_url, asking(**more))
    error = reply.json()["error"]
    assert (reply.status_code, error["param"]) == (400, param)
    assert said in error["message"]


def test_the_answer_that_outgrows_its_grammar_ends_alone_with_the_reason(model):
    from llguidance import LLMatcher, LLParserLimits

    from groundrule.inference.grammar import GrammarConstraint

    tokens = grammars_of(model)._tokens
    limits = LLParserLimits(step_max_items=1, verbose_errors=False)
    lark = 'start: a*\na: "x" | "y" b\nb: "z" | a\n'
    matcher = LLMatcher(tokens, LLMatcher.grammar_from_lark(lark), log_level=0, limits=limits)
    constraint = GrammarConstraint(matcher, 260, model.eos_ids)
    allowed = constraint.allowed()
    assert allowed.nonzero()[:, 0].tolist() == [END]
    assert constraint.fault
