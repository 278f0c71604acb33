"""What all pages have in common to look at."""

from __future__ import annotations

from importlib import resources


def with_palette(css: str) -> str:
    """A page's own style sheet behind the colours and typefaces that every page has."""
    return resources.files("groundrule._util").joinpath("palette.css").read_text("utf-8") + css
