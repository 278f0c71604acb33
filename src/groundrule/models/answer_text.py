"""The text of an answer while it grows, and where a stop string ends it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenizers.decoders import DecodeStream


class AnswerText:
    """Decodes token by token; what may still change is held back."""

    def __init__(self, tokenizer: Any, stops: Sequence[str]) -> None:
        self._tokenizer = tokenizer
        self._stops = stops
        self._stream = DecodeStream(skip_special_tokens=False)
        self._text = ""
        self.stopped = False

    def add(self, token: int) -> str:
        """The text so far that will not be taken back; `stopped` says that a stop string came."""
        before = len(self._text)
        self._text += self._stream.step(self._tokenizer.backend_tokenizer, token) or ""
        if not self._stops:
            return self._text
        longest = max(map(len, self._stops))
        places = [p for s in self._stops if (p := self._text.find(s, max(0, before - longest + 1))) >= 0]
        if places:
            self.stopped = True
            return self._text[: min(places)]
        return self._text[: len(self._text) - self._held_back()]

    def whole(self, ids: Sequence[int]) -> str:
        """The text of all these tokens at once: what is incomplete at the end is shown as such."""
        text: str = self._tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return text

    def _held_back(self) -> int:
        """How many characters at the end may be the beginning of a stop string."""
        return max(
            (n for s in self._stops for n in range(1, len(s)) if self._text.endswith(s[:n])), default=0
        )
