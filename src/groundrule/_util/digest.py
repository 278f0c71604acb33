"""What tells one text or record from another: the first 16 hex digits of a SHA-256."""

from __future__ import annotations

import hashlib
import json
from typing import Any


def digest(data: str | bytes) -> str:
    """Of a text, as UTF-8, or of bytes."""
    return hashlib.sha256(data.encode("utf-8") if isinstance(data, str) else data).hexdigest()[:16]


def digest_of(record: Any) -> str:
    """Of plain data as JSON, whatever the order of its keys."""
    return digest(json.dumps(record, sort_keys=True))
