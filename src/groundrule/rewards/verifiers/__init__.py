"""Verifiers: deterministic checks of an answer against a reference, each a function and a scorer.

Names are imported when they are used, so that `import groundrule.rewards` stays cheap.
"""

from __future__ import annotations

import importlib
from typing import Any

_HOME = {
    "VerifierScorer": "scorer",
    "code_scorer": "code",
    "exact_scorer": "exact",
    "final_state_scorer": "final_state",
    "json_schema_scorer": "json_schema",
    "math_scorer": "math",
    "regex_scorer": "exact",
    "sql_scorer": "sql",
    "verify_code": "code",
    "verify_code_async": "code",
    "verify_exact": "exact",
    "verify_final_state": "final_state",
    "verify_json_schema": "json_schema",
    "verify_math": "math",
    "verify_math_async": "math",
    "verify_regex": "exact",
    "verify_sql": "sql",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
