"""The sheet on which a transcript is written: boundary lines, text, images.

Text from outside is made harmless as it is written. Boundary lines hold our own words and numbers; a name
from outside stands in one only where it is a plain name, or else quoted and short.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from dataclasses import dataclass, field
from typing import Any

from groundrule._util.digest import digest
from groundrule.rewards.elision import Elision, Shortened
from groundrule.rewards.neutral import neutral, neutral_line

_PLAIN_NAME = re.compile(r"[\w.:/-]{1,64}")
_DETAILS = ("low", "high", "auto")


@dataclass
class Page:
    """The lines and images written so far."""

    code: str
    """What marks the true boundaries."""
    show_images: bool = False
    images: int = 0
    _parts: list[str | dict[str, Any]] = field(default_factory=list)

    def mark(self, name: str) -> None:
        """A boundary line."""
        self._parts.append(f"<<<{self.code} {neutral_line(name)}>>>")

    def text(self, text: str | Shortened) -> None:
        """Text from outside."""
        if isinstance(text, Shortened):
            self.text(text.head)
            self.elision(text.elided)
            self.text(text.tail)
        elif text:
            self._parts.append(neutral(text))

    def elision(self, elision: Elision) -> None:
        """That something is left out here."""
        self.mark(str(elision))

    def image(self, part: dict[str, Any]) -> None:
        """An image, or what can be said of it to a judge that takes none."""
        self.images += 1
        source = part.get("image_url")
        url = str(source.get("url", "")) if isinstance(source, dict) else str(source or "")
        self.mark(f"IMAGE {self.images}: {_described(url)}")
        if self.show_images:
            wanted = source.get("detail") if isinstance(source, dict) else None
            detail = {"detail": wanted} if wanted in _DETAILS else {}
            self._parts.append({"type": "image_url", "image_url": {"url": url, **detail}})

    def file(self, part: Any) -> None:
        """A part that is neither text nor image, told apart by its hash."""
        kind = str(part.get("type") or "part") if isinstance(part, dict) else "part"
        data = json.dumps(part, sort_keys=True, default=str)
        self.mark(
            f"PART {name_of(kind)} {len(data)} characters sha256:{digest(data.encode('utf-8', 'replace'))}"
        )

    def content(self) -> str | list[dict[str, Any]]:
        """One text, or parts in the order written where there are images."""
        if all(isinstance(part, str) for part in self._parts):
            return "\n".join(str(part) for part in self._parts)
        merged: list[dict[str, Any]] = []
        for part in self._parts:
            if isinstance(part, dict):
                merged.append(part)
            elif merged and merged[-1]["type"] == "text":
                merged[-1]["text"] += "\n" + part
            else:
                merged.append({"type": "text", "text": part})
        return merged


def name_of(name: object) -> str:
    """A name from outside as it may stand in a boundary line."""
    text = str(name)
    return text if _PLAIN_NAME.fullmatch(text) else quoted(text)


def quoted(name: object) -> str:
    """A name in quotes, so that it cannot pass for a word of ours; at most 64 characters."""
    return json.dumps(str(name)[:64], ensure_ascii=False)


def _described(url: str) -> str:
    """Type, size and hash of an embedded image; the address of a linked one."""
    if not url.startswith("data:"):
        return f"at {json.dumps(url[:200], ensure_ascii=False)}"
    header, _, data = url.partition(",")
    try:
        raw = base64.b64decode(data, validate=False)
    except (binascii.Error, ValueError):
        raw = data.encode("utf-8", "replace")
    kind = header.removeprefix("data:").partition(";")[0] or "unknown type"
    return f"{name_of(kind)} {len(raw)} bytes sha256:{digest(raw)}"
