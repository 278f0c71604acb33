"""The prompt texts that come with the library."""

from __future__ import annotations

import functools
from importlib import resources

from groundrule._util.digest import digest


@functools.cache
def prompt_text(name: str, package: str = "groundrule.rewards") -> str:
    """The text of `prompts/<name>` in a package."""
    return resources.files(package).joinpath("prompts", name).read_text("utf-8").strip()


@functools.cache
def prompt_version(name: str, package: str = "groundrule.rewards") -> str:
    """Changes with every change of the text; part of each cache key."""
    return digest(prompt_text(name, package))
