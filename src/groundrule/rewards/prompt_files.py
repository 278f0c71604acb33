"""The prompt texts that come with the library."""

from __future__ import annotations

import functools
import hashlib
from importlib import resources


@functools.cache
def prompt_text(name: str) -> str:
    """The text of `prompts/<name>`."""
    return resources.files("groundrule.rewards").joinpath("prompts", name).read_text("utf-8").strip()


@functools.cache
def prompt_version(name: str) -> str:
    """Changes with every change of the text; part of each cache key."""
    return hashlib.sha256(prompt_text(name).encode("utf-8")).hexdigest()[:16]
