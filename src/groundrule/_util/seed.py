"""Seeds made from names, so that a draw depends on what it is for and not on what came before it."""

from __future__ import annotations

import hashlib


def derive(*parts: object) -> int:
    """A 63-bit seed from any printable parts; equal parts, equal seed, on every machine and version."""
    text = "\x1f".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode("utf-8")).digest()[:8], "big") >> 1
