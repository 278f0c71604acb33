"""Is an answer JSON that fits a schema (Draft 2020-12)?"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial as fixed
from typing import Any

from groundrule.data.group import TrajectoryGroup
from groundrule.data.score import Score
from groundrule.errors import ConfigError
from groundrule.rewards.replies import answer_text
from groundrule.rewards.verifiers.scorer import VerifierScorer, group_reference
from groundrule.rewards.verifiers.workers import WorkerError, WorkerTimeout, shared

LONGEST = 200_000
"""Characters of an answer."""

DEEPEST = 64
"""Levels of nesting of an answer."""

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_FENCE = re.compile(r"\s*```(?:json)?[ \t]*\n(.*?)\n?[ \t]*```\s*", re.DOTALL | re.IGNORECASE)
_CHECK = "groundrule.rewards.verifiers.json_schema_check:check"


def verify_json_schema(
    answer: str, schema: Mapping[str, Any] | bool, *, partial: bool = False, timeout_s: float = 5.0
) -> Score:
    """1.0 where the answer is one JSON value that fits the schema, else 0.0.

    The answer, without thinking, must be JSON and nothing else, but for a code fence around it: nothing is repaired,
    a key given twice and NaN are not JSON. With `partial`, an answer that is JSON earns
    (required leaves that are there and valid + 1 if the whole is valid) / (required leaves + 1), where a required leaf
    is a property that is required all the way down and requires nothing further itself; only a valid answer gets 1.0.

    A schema that is none, or that refers to something outside itself, raises `ConfigError`: nothing is ever fetched.
    Validation runs in a process that is killed after `timeout_s` seconds; then there is no score.
    """
    if importlib.util.find_spec("jsonschema") is None:
        raise ConfigError("verify_json_schema needs jsonschema; install it: pip install 'groundrule[verify]'")
    _check_schema(schema)
    text = answer_text(answer)
    fenced = _FENCE.fullmatch(text)
    try:
        read_strictly(fenced[1] if fenced else text)
    except ValueError as error:
        return Score(value=0.0, explanation=f"not JSON: {error}")
    try:
        found = shared.call(_CHECK, fenced[1] if fenced else text, schema, timeout_s=timeout_s)
    except WorkerTimeout as error:
        return Score.none(f"timeout: {error}")
    except WorkerError as error:
        return Score.none(f"broken: {error}")
    if "bad_schema" in found:
        raise ConfigError(f"verify_json_schema: the schema cannot be used: {found['bad_schema']}")
    leaves, good, problems = found["leaves"], found["good"], found["problems"]
    value = float(not problems)
    if partial:
        value = (good + value) / (leaves + 1)
    said = "; ".join(problems) or "it fits the schema"
    return Score(
        value=value, explanation=said, parts={"required": float(leaves), "required_valid": float(good)}
    )


def read_strictly(text: str) -> Any:
    """The value of a JSON text within the limits. Raises `ValueError`, which says what is wrong."""
    if len(text) > LONGEST:
        raise ValueError(f"{len(text)} characters are more than {LONGEST}")
    if _depth(text) > DEEPEST:
        raise ValueError(f"it is nested more than {DEEPEST} levels deep")
    return json.loads(text, object_pairs_hook=_object, parse_constant=_constant)


def _depth(text: str) -> int:
    """Open brackets at most, strings aside."""
    depth = deepest = 0
    in_string = False
    for sign in re.findall(r'\\.|["\[\]{}]', text, re.DOTALL):
        if sign == '"':
            in_string = not in_string
        elif not in_string:
            depth += (sign in "[{") - (sign in "]}")
            deepest = max(deepest, depth)
    return deepest


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys = [key for key, _ in pairs]
    if len(set(keys)) < len(keys):
        raise ValueError(f"the key {max(keys, key=keys.count)!r} is given twice in one object")
    return dict(pairs)


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _check_schema(schema: Any) -> None:
    if not isinstance(schema, Mapping | bool):
        raise ConfigError(f"a schema is an object or a boolean, not {type(schema).__name__}")
    draft = schema.get("$schema", _DRAFT) if isinstance(schema, Mapping) else _DRAFT
    if str(draft).rstrip("#") != _DRAFT:
        raise ConfigError(f"the schema is written for {draft}; verify_json_schema reads {_DRAFT} only")
    own = {"", *(str(value).rstrip("#") for key, value in _keywords(schema) if key == "$id")}
    for key, value in _keywords(schema):
        if key in ("$ref", "$dynamicRef") and str(value).partition("#")[0] not in own | {_DRAFT}:
            raise ConfigError(
                f"the schema refers to {value!r}, which is outside of it and is not fetched; put it under $defs"
            )


def _keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    """All pairs in the schema whose value is a text."""
    waiting = [schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, Mapping):
            yield from ((key, value) for key, value in item.items() if isinstance(value, str))
        if isinstance(item, Mapping | list | tuple):
            waiting += item.values() if isinstance(item, Mapping) else item


def json_schema_scorer(
    *,
    partial: bool = False,
    timeout_s: float = 5.0,
    reference: Callable[[TrajectoryGroup], Any] = group_reference,
) -> VerifierScorer:
    """`verify_json_schema` for groups; the reference is the schema."""
    return VerifierScorer(
        fixed(verify_json_schema, partial=partial, timeout_s=timeout_s), reference=reference
    )
