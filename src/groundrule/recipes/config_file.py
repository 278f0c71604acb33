"""TOML files as checked configurations; faults name the file, the key and the nearest known key."""

from __future__ import annotations

import difflib
import tomllib
from pathlib import Path
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from groundrule.errors import ConfigError

Config = TypeVar("Config", bound=BaseModel)


def read_config(kind: type[Config], path: str | Path, changes: dict[str, Any] | None = None) -> Config:
    """Read a TOML file; `changes` replace single values by dotted name (`train.steps`).

    Raises `ConfigError` that names file, key and the nearest known key.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
        data = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not a TOML file: {error}") from error
    for name, value in (changes or {}).items():
        _change(data, name, value)
    return checked_config(kind, data, source=str(path))


def _change(data: dict[str, Any], name: str, value: Any) -> None:
    """Set one value by its dotted name; a section that is not a table is left for the check to find."""
    *sections, key = name.split(".")
    for section in sections:
        data = data.setdefault(section, {})
        if not isinstance(data, dict):
            return
    data[key] = value


def checked_config(kind: type[Config], data: dict[str, Any], *, source: str = "configuration") -> Config:
    """The checked configuration of plain data."""
    try:
        return kind.model_validate(data)
    except ValidationError as error:
        raise ConfigError(f"{source}: {_say(kind, error)}") from error


def _say(kind: type[BaseModel], error: ValidationError) -> str:
    fault = error.errors()[0]
    place = [str(part) for part in fault["loc"]]
    name = ".".join(place)
    if fault["type"] == "value_error":
        return f"{name}: {fault['ctx']['error']}" if name else str(fault["ctx"]["error"])
    if fault["type"] != "extra_forbidden":
        return f"{name} is {fault['input']!r}: {fault['msg']}"
    known = _known_at(kind, place[:-1])
    near = difflib.get_close_matches(place[-1], known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"
    return f"unknown key {name!r}; {hint}"


def _known_at(kind: type[BaseModel], place: list[str]) -> list[str]:
    """The keys of the section at this place; those of the last section that has a name of its own."""
    section: Any = kind
    for name in place:
        fields = getattr(section, "model_fields", {})
        if name in fields:
            inner = fields[name].annotation
            section = next((a for a in get_args(inner) if hasattr(a, "model_fields")), inner)
    return list(section.model_fields)
