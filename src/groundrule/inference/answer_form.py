"""The form that a request demands of its answer, as a grammar (in Lark's notation, as llguidance reads it).

An answer may have to be JSON (`response_format`), tool calls (`tool_choice`), or text in which every call follows the
schema of its tool (`strict` tools) and is the only one (`parallel_tool_calls` off). Any other is free: no grammar.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from groundrule.inference.body_parts import ResponseFormat, Tool, ToolChoice
from groundrule.inference.schema import ChatCompletionBody

_SPACE = r" |\n {0,16}"
"""Between the pieces of JSON: one space, or one line break with its indentation. With any number of blanks allowed, a
weak model writes them until its limit."""

_CALL = r"""
call: "<tool_call>" body
text_call: head body
head[lazy]: /(.|\n)*<tool_call>/
TEXT: /(.|\n)*/
GAP: /\n?/
body: GAP object GAP "</tool_call>"
"""


def grammar_of(body: ChatCompletionBody) -> str | None:
    """The grammar of this request's answers; None where any text will do."""
    schema = _answer_schema(body.response_format)
    answer = "" if schema is None else f"answer: %json {_json(schema)}\n"
    if not body.offers_tools:
        return f"start: answer\n{answer}" if answer else None
    tools = _callable(body)
    further = "(GAP call)*" if body.parallel_tool_calls else ""
    if body.tool_choice != "auto":
        return f"start: call {further}\n{_call_rules(tools)}"
    if answer:
        return f"start: answer | call {further}\n{answer}{_call_rules(tools)}"
    if body.parallel_tool_calls and not any(tool.function.strict for tool in tools):
        return None
    return f"start: TEXT | text_call {further}\n{_call_rules(tools)}"


def _answer_schema(wanted: ResponseFormat | None) -> Mapping[str, Any] | None:
    if wanted is None or wanted.type == "text":
        return None
    return {"type": "object"} if wanted.json_schema is None else _closed(wanted.json_schema.schema_)


def _callable(body: ChatCompletionBody) -> Sequence[Tool]:
    tools, chosen = body.tools or [], body.tool_choice
    if not isinstance(chosen, ToolChoice):
        return tools
    return [tool for tool in tools if tool.function.name == chosen.function.name]


def _call_rules(tools: Sequence[Tool]) -> str:
    """Each tool's arguments are a document of their own, so that references inside their schema hold."""
    lines = [f"object: {' | '.join(f'object_{i}' for i in range(len(tools)))}"]
    for index, tool in enumerate(tools):
        head = json.dumps(f'{{"name": "{tool.function.name}", "arguments": ')
        schema = _closed({"type": "object", **(tool.function.parameters or {})})
        lines.append(f'object_{index}: {head} arguments_{index} "}}"')
        lines.append(f"arguments_{index}: %json {_json(schema)}")
    return _CALL + "\n".join(lines) + "\n"


def _closed(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema with objects that list their properties taken at their word: a weak model invents further ones.

    Where a schema is put together by `allOf`, each part sees only some of the properties, so all stay open.
    """
    closed: Mapping[str, Any] = schema if "allOf" in json.dumps(schema) else _closed_part(schema)
    return closed


def _closed_part(schema: Any) -> Any:
    if not isinstance(schema, Mapping):
        return schema
    closed = dict(schema)
    for key in ("properties", "$defs", "definitions"):
        if isinstance(schema.get(key), Mapping):
            closed[key] = {name: _closed_part(inner) for name, inner in schema[key].items()}
    if "items" in schema:
        closed["items"] = _closed_part(schema["items"])
    if schema.get("properties") and not schema.keys() & _OPEN:
        closed["additionalProperties"] = False
    return closed


_OPEN = {"additionalProperties", "anyOf", "if", "not", "oneOf", "patternProperties", "$ref"}


def _json(schema: Mapping[str, Any]) -> str:
    """The schema as a part of a grammar, on one line, with our rule for blanks."""
    return json.dumps({**schema, "x-guidance": {"whitespace_pattern": _SPACE}})
