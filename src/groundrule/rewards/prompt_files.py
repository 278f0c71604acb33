"""The prompt texts that come with the library."""

from __future__ import annotations

import functools
import hashlib
from importlib import resources


@functools.cache
def prompt_text(name: str, package: str = "groundrule.rewards") -> str:
    """The text of `prompts/<name>` in a package."""
    return resources.files(package).joinpath("prompts", name).read_text("utf-8").strip()


@functools.cache
def prompt_version(name: str, package: str = "groundrule.rewards") -> str:
    """Changes with every change of the text; part of each cache key."""
    return hashlib.sha256(prompt_text(name, package).encode("utf-8")).hexdigest()[:16]
