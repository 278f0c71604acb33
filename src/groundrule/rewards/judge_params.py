"""The parameters of a judge that is named in a configuration, checked."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from groundrule.errors import ConfigError

Params = TypeVar("Params", bound=BaseModel)


def checked_params(kind: type[Params], judge: str, params: Mapping[str, Any] | None) -> Params:
    """Raises `ConfigError` that names the judge, the parameter and the nearest one that it has."""
    try:
        return kind.model_validate(dict(params or {}))
    except ValidationError as error:
        fault = error.errors()[0]
        key = ".".join(map(str, fault["loc"]))
        near = difflib.get_close_matches(key, kind.model_fields, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"its parameters are {', '.join(kind.model_fields)}"
        raise ConfigError(f"{judge} got {key}={fault['input']!r}: {fault['msg']}; {hint}") from error
