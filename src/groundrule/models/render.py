"""Chat messages -> token ids, through the model's own chat template."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from groundrule.data.messages import Message, Tools, text_of


class ChatRenderer:
    """Renders conversations for one tokenizer."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer

    def prompt_ids(self, messages: Sequence[Message], tools: Tools | None = None) -> list[int]:
        plain = [{**m, "content": text_of(m.get("content"))} for m in messages]
        text = self.tokenizer.apply_chat_template(
            plain, tools=tools, add_generation_prompt=True, tokenize=False
        )
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False)
        return ids
