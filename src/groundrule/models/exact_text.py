"""Text -> token ids where control tokens come from the chat template only, never from what somebody typed."""

from __future__ import annotations

import json
import re
import secrets
from typing import Any

from groundrule.errors import ModelError

_CONTROL_SHAPE = re.compile(r"<\|.*\|>", re.DOTALL)


class ExactText:
    """A private copy of a tokenizer in which every control token has a second, unguessable name.

    `typed` hides the control tokens of user text before the template runs. Afterwards those still
    standing in the text are the template's: they get their second name and become ids, while the
    hidden ones are put back and are cut up like any other text.
    """

    def __init__(self, tokenizer: Any) -> None:
        from tokenizers import AddedToken, Tokenizer

        backend = getattr(tokenizer, "backend_tokenizer", None)
        if backend is None:
            raise ModelError(
                f"the tokenizer {type(tokenizer).__name__} has no fast form; use a model with a tokenizer.json"
            )
        described = json.loads(backend.to_str())
        controls = [t for t in described["added_tokens"] if _is_control(t, tokenizer.all_special_tokens)]
        for token in controls:
            token["special"] = True
        self._copy = Tokenizer.from_str(json.dumps(described))
        self._copy.encode_special_tokens = True
        self._copy.no_truncation()
        self._copy.no_padding()
        self._nonce = f"gr{secrets.token_hex(8)}"
        self.mark = f"{self._nonce}m"
        """Stands for a text whose place in the rendered conversation is looked for."""
        self._anchor = f"{self._nonce}a"
        self._names = {t["content"]: f"{self._nonce}c{i}x" for i, t in enumerate(controls)}
        self._hidden = {t["content"]: f"{self._nonce}t{i}x" for i, t in enumerate(controls)}
        renamed = [
            AddedToken(self._names[t["content"]], lstrip=t["lstrip"], rstrip=t["rstrip"], normalized=False)
            for t in controls
        ]
        self._copy.add_tokens([*renamed, AddedToken(self._anchor, normalized=False)])
        self._ids = {self._copy.token_to_id(self._names[t["content"]]): int(t["id"]) for t in controls}
        longest_first = sorted(self._names, key=len, reverse=True)
        self._control = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")

    def typed(self, value: Any) -> Any:
        """Messages, tools or text with control tokens hidden in every string."""
        if isinstance(value, str):
            return self._control.sub(lambda found: self._hidden[found.group()], value)
        if isinstance(value, dict):
            return {self.typed(key): self.typed(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.typed(item) for item in value]
        return value

    def first_control(self, text: str) -> str | None:
        """The first control token that the template wrote into this text."""
        found = self._control.search(text)
        return found.group() if found else None

    def ids(self, text: str) -> list[int]:
        """Token ids of rendered text."""
        text = self._control.sub(lambda found: self._names[found.group()], text)
        for token, hidden in self._hidden.items():
            text = text.replace(hidden, token)
        encoded = self._copy.encode(text, add_special_tokens=False).ids
        return [self._ids.get(i, i) for i in encoded]

    def ids_after_prompt(self, text: str) -> list[int]:
        """Token ids of text that follows a prompt: no piece is joined to the prompt, none is marked as a start."""
        return self.ids(self._anchor + text)[1:]


def _is_control(token: dict[str, Any], named: list[str]) -> bool:
    shaped = _CONTROL_SHAPE.fullmatch(token["content"]) is not None
    return bool(token["special"]) or token["content"] in named or shaped
