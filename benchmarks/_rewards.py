"""A reward that costs nothing, for both sides of a comparison."""

from __future__ import annotations


def letters(text: str) -> float:
    """The share of characters that are the letter e."""
    return text.count("e") / max(1, len(text))
