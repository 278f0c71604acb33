"""The worker's part of `json_schema`: validate, and count the required leaves. jsonschema is imported here only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import referencing.exceptions

from groundrule.rewards.verifiers.json_schema import read_strictly

_MOST_SHOWN = 5
_MOST_COUNTED = 1000
_DEEPEST_SCHEMA = 32

Path = tuple[str, ...]


def check(text: str, schema: Any) -> dict[str, Any]:
    """`problems` in words, `leaves` that are required and how many of them are `good`; or `bad_schema`."""
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        return {"bad_schema": error.message}
    value = read_strictly(text)
    # A registry of its own: the default one would fetch what it does not know.
    validator = jsonschema.Draft202012Validator(schema, registry=referencing.Registry())
    try:
        errors = [error for error, _ in zip(validator.iter_errors(value), range(_MOST_COUNTED), strict=False)]
    except referencing.exceptions.Unresolvable as error:
        return {"bad_schema": f"{error} cannot be found in it"}
    wrong = [tuple(str(step) for step in error.absolute_path) for error in errors]
    leaves = list(dict.fromkeys(_required_leaves(schema, schema, ())))
    good = sum(_there(value, leaf) and not any(_covers(path, leaf) for path in wrong) for leaf in leaves)
    shown = [
        f"{'.'.join(path) or 'it'}: {error.message[:200]}" for path, error in zip(wrong, errors, strict=True)
    ]
    return {"problems": shown[:_MOST_SHOWN], "leaves": len(leaves), "good": good}


def _required_leaves(schema: Any, root: Any, path: Path) -> Iterator[Path]:
    """Paths of properties that are required, and whose own schema requires no further ones."""
    schema = _resolved(schema, root)
    required = schema.get("required", []) if isinstance(schema, dict) else []
    for name in required if len(path) < _DEEPEST_SCHEMA else []:
        inner = schema.get("properties", {}).get(name, {})
        below = list(_required_leaves(inner, root, (*path, name)))
        yield from below or [(*path, name)]


def _resolved(schema: Any, root: Any) -> Any:
    """Follows references of the form `#/$defs/name`."""
    seen = 0
    while (
        isinstance(schema, dict) and str(schema.get("$ref", "")).startswith("#/") and seen < _DEEPEST_SCHEMA
    ):
        target: Any = root
        for step in schema["$ref"][2:].split("/"):
            key = step.replace("~1", "/").replace("~0", "~")
            target = target.get(key, {}) if isinstance(target, dict) else {}
        schema, seen = target, seen + 1
    return schema


def _there(value: Any, path: Path) -> bool:
    for step in path:
        if not isinstance(value, dict) or step not in value:
            return False
        value = value[step]
    return True


def _covers(wrong: Path, leaf: Path) -> bool:
    """An error at the leaf or below it; one above it concerns the whole, and is counted there."""
    return wrong[: len(leaf)] == leaf
