"""Places to train: one learner and one server each, behind the models that a program registers."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from groundrule.backends.local import LocalBackend

BACKENDS = {"local": "groundrule.backends.local:LocalBackend"}
"""Name -> "module:class", imported on use."""


def backend_class(name: str) -> type[LocalBackend]:
    """The class behind a name of the table."""
    module, _, attribute = BACKENDS[name].partition(":")
    found: type[LocalBackend] = getattr(importlib.import_module(module), attribute)
    return found
