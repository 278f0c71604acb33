"""Criteria, and the file that a person may edit."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from groundrule._util.files import write_atomic
from groundrule.errors import ConfigError

_HEADING = "The demands of a system prompt, as they are judged. Edit, weigh, add, remove."

MOST = 40
"""More demands than a judge can check one by one in a call."""


class Criterion(BaseModel):
    """One demand of a spec."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(min_length=1)
    text: str = Field(min_length=1)
    kind: Literal["do", "avoid"] = "do"
    """`do`: something that must be there; it counts only with a quote that shows it. `avoid`: something that
    must not be there; breaking it counts only with a quote."""
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    veto: bool = False
    """Breaking it makes everything else count for little."""


class Checklist(BaseModel):
    """The demands of one system prompt."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    criteria: list[Criterion] = Field(min_length=1, max_length=MOST)
    spec_sha256: str | None = None
    """Of the system prompt that it was made from; None: written by hand."""

    @field_validator("criteria")
    @classmethod
    def _no_id_twice(cls, criteria: list[Criterion]) -> list[Criterion]:
        twice = [name for name, times in Counter(c.id for c in criteria).items() if times > 1]
        if twice:
            raise ValueError(f"the id {twice[0]!r} is used twice")
        return criteria

    def fits(self, spec: str) -> bool:
        """False where it was made from another system prompt."""
        return self.spec_sha256 in (None, hash_of(spec))

    def __str__(self) -> str:
        return "\n".join(
            f"{c.id} [{c.kind}, weight {c.weight:g}{', veto' if c.veto else ''}] {c.text}"
            for c in self.criteria
        )

    def save(self, path: str | Path) -> None:
        """As TOML, or as JSON where the name ends so."""
        target = Path(path)
        data = self.model_dump(mode="json", exclude_none=True)
        text = (
            json.dumps(data, indent=2, ensure_ascii=False) + "\n"
            if target.suffix == ".json"
            else toml_text(_HEADING, data, "criteria")
        )
        write_atomic(target, text)

    @classmethod
    def load(cls, path: str | Path) -> Checklist:
        """From a .toml or .json file; raises `ConfigError` that names file and key."""
        try:
            text = Path(path).read_text(encoding="utf-8")
            data = json.loads(text) if Path(path).suffix == ".json" else tomllib.loads(text)
        except OSError as error:
            raise ConfigError(f"the checklist {path} cannot be read: {error.strerror or error}") from error
        except ValueError as error:
            raise ConfigError(f"the checklist {path} is neither TOML nor JSON: {error}") from error
        try:
            return cls.model_validate(data)
        except ValidationError as error:
            raise ConfigError(f"the checklist {path}: {fault_of(error)}") from error


def hash_of(spec: str) -> str:
    """What tells one system prompt from another."""
    return hashlib.sha256(spec.encode("utf-8")).hexdigest()


def fault_of(error: ValidationError) -> str:
    """The first fault in words: where, what, and why not."""
    fault = error.errors()[0]
    place = ".".join(str(part) for part in fault["loc"])
    return f"{place} is {str(fault['input'])[:80]!r}: {fault['msg']}"


def toml_text(heading: str, data: Mapping[str, Any], tables: str) -> str:
    """A file with a comment, the plain entries of `data`, and the list of tables among them.

    Values are texts, numbers, booleans and lists of them: a JSON text is a TOML text too, once DEL is escaped.
    """
    lines = [f"# {heading}", ""]
    if plain := [f"{name} = {_value(value)}" for name, value in data.items() if name != tables]:
        lines += [*plain, ""]
    for table in data[tables]:
        lines += [f"[[{tables}]]", *(f"{name} = {_value(value)}" for name, value in table.items()), ""]
    return "\n".join(lines)


def _value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
