"""JSON answers: strict reading, strict validation, and partial credit that is never full."""

from __future__ import annotations

import json

import pytest

from groundrule.errors import ConfigError
from groundrule.rewards.verifiers import verify_json_schema

SCHEMA = {
    "type": "object",
    "required": ["name", "address"],
    "additionalProperties": False,
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
    "$defs": {
        "address": {
            "type": "object",
            "required": ["city", "zip"],
            "properties": {"city": {"type": "string"}, "zip": {"type": "string", "pattern": "^[0-9]+$"}},
        }
    },
}
"""Three required leaves: name, address.city, address.zip."""

GOOD = {"name": "Ada", "address": {"city": "Bern", "zip": "3000"}}


def value(answer: object, *, partial: bool = False) -> float | None:
    text = answer if isinstance(answer, str) else json.dumps(answer)
    return verify_json_schema(text, SCHEMA, partial=partial, timeout_s=60).value


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps(GOOD),
        f"```json\n{json.dumps(GOOD, indent=1)}\n```",
        f"<think>{{}}</think>\n{json.dumps(GOOD)}\n",
    ],
)
def test_json_that_fits_is_right(answer):
    assert value(answer) == 1.0


@pytest.mark.parametrize(
    "answer",
    [
        "",
        f"Here it is: {json.dumps(GOOD)}",
        f"{json.dumps(GOOD)} {json.dumps(GOOD)}",
        json.dumps(GOOD).replace('"', "'"),
        '{"name": "Ada", "name": "Eve", "address": {"city": "Bern", "zip": "3000"}}',
        '{"name": NaN}',
        "[" * 100 + "]" * 100,
        '{"a":' * 50_000,
        '"' + "x" * 300_000 + '"',
    ],
)
def test_what_is_not_one_json_value_is_wrong(answer):
    assert value(answer) == 0.0


@pytest.mark.parametrize(
    ("answer", "credit"),
    [
        (GOOD, 1.0),
        ({**GOOD, "name": 1}, 0.5),
        ({"name": "Ada"}, 0.25),
        ({"name": "Ada", "address": {"city": "Bern", "zip": "A"}}, 0.5),
        ({"name": "Ada", "address": {"city": "Bern"}}, 0.5),
        ({**GOOD, "more": 1}, 0.75),
        ({}, 0.0),
        ([], 0.0),
    ],
)
def test_partial_credit_counts_required_leaves_and_the_whole(answer, credit):
    assert value(answer, partial=True) == credit


def test_the_explanation_names_the_place():
    score = verify_json_schema(json.dumps({**GOOD, "name": 1}), SCHEMA, timeout_s=60)
    assert score.explanation == "name: 1 is not of type 'string'"


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"$ref": "https://example.com/other.json"}, "outside of it and is not fetched"),
        ({"properties": {"a": {"$ref": "file.json#/x"}}}, "outside of it and is not fetched"),
        ({"$ref": "#/$defs/missing"}, "cannot be used"),
        ({"type": "number or so"}, "cannot be used"),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#"},
            "reads https://json-schema.org/draft/2020-12",
        ),
        ("{}", "a schema is an object or a boolean, not str"),
    ],
)
def test_a_schema_that_cannot_be_used_is_the_callers_mistake(schema, message):
    with pytest.raises(ConfigError, match=message):
        verify_json_schema("{}", schema, timeout_s=60)


def test_a_pattern_of_the_schema_that_backtracks_for_ever_gives_no_score():
    score = verify_json_schema(json.dumps("a" * 50 + "!"), {"pattern": "^(a+)+$"}, timeout_s=0.5)
    assert score.reason == "timeout: no result within 0.5 s"


def test_a_schema_that_is_its_own_part_gives_no_score():
    assert verify_json_schema("{}", {"$ref": "#"}, timeout_s=60).reason == "broken: it is nested too deeply"
