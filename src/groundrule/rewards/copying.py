"""Copies in an answer: runs taken over from a source, and words that come again."""

from __future__ import annotations

from collections.abc import Sequence


def _plain(text: str) -> str:
    """Letters and digits in lower case: spaces, case and punctuation do not hide a copy."""
    return "".join(c for c in text.lower() if c.isalnum())


def run_lengths(tokens: Sequence[str], source: str) -> list[int]:
    """For each token, how many tokens long the copied run that ends with it is so far (0: not copied).

    Compared as text, so that another cut into tokens does not hide a copy.
    """
    text = _plain(source)
    lengths, start = [], 0
    pieces = [_plain(t) for t in tokens]
    for i, piece in enumerate(pieces):
        while start <= i and "".join(pieces[start : i + 1]) not in text:
            start += 1
        lengths.append(sum(1 for p in pieces[start : i + 1] if p) if piece else 0)
    return lengths


def inside_runs(tokens: Sequence[str], sources: Sequence[str], least: int) -> list[bool]:
    """True for tokens inside a run of at least `least` tokens copied from one of the sources."""
    inside = [False] * len(tokens)
    for source in sources:
        lengths = run_lengths(tokens, source) if source else [0] * len(tokens)
        for end, length in enumerate(lengths):
            if length >= least:
                start, seen = end, 0
                while start >= 0 and seen < length:
                    seen += bool(_plain(tokens[start]))
                    inside[start] = True
                    start -= 1
    return inside


def repeats(tokens: Sequence[str]) -> list[bool]:
    """True where a token follows itself, or the same token as once before in this answer: nothing new is said."""
    pieces = [_plain(t) for t in tokens]
    seen: set[tuple[str, str]] = set()
    repeated = []
    for pair in zip(["", *pieces], pieces, strict=False):
        repeated.append(pair in seen or (pair[0] == pair[1] != ""))
        seen.add(pair)
    return repeated


def without_runs(answer: str, source: str, least: int) -> str:
    """The answer without runs of `least` or more words copied from the source."""
    words = answer.split()
    inside = inside_runs([f" {w}" for w in words], [source], least)
    return " ".join(w for w, cut in zip(words, inside, strict=True) if not cut)
