"""Small tokenizers made in code, with the chat templates of `cases/chat_templates.json`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

SPECIALS = ["<|bos|>", "<|im_start|>", "<|im_end|>", "<|endoftext|>"]
TEMPLATES: dict[str, str] = json.loads(
    (Path(__file__).parent / "cases" / "chat_templates.json").read_text(encoding="utf-8")
)


def wrapped(backend: Tokenizer, template: str | None = "chatml", **more: Any) -> PreTrainedTokenizerFast:
    """The tokenizer as transformers has it, with a template by name (or as text)."""
    named = {"bos_token": "<|bos|>", "eos_token": "<|im_end|>", "pad_token": "<|endoftext|>", **more}
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, **named)
    tokenizer.chat_template = TEMPLATES.get(template, template) if template else None
    return tokenizer


def drift() -> Tokenizer:
    """'hello' is one piece, but the pieces he + l + lo exist too."""
    lines = ["hello world hello there hello"] * 50
    lines += ["user\nassistant\nsystem\ntool\n\n\n\nHello world\n\nHi there\n"] * 50
    lines += ["lo hel low help lo hel"] * 10
    return _trained(pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True), lines, 400)


def newline_merging() -> Tokenizer:
    """Two newlines form one piece, across a turn boundary as well."""
    cut = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r"\s*[\r\n]+| ?[^\s]+|\s+"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    return _trained(cut, ["user\nassistant\n\nHello world\n\n\nHi\n\n"] * 200, 350)


def metaspace() -> Tokenizer:
    """Adds a leading-space piece to the first word of every separate encode call."""
    words = {"<unk>": 0, "▁The": 1, "The": 2, "▁answer": 3, "<a>": 4}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
    tokenizer.add_special_tokens([AddedToken("<a>", special=True)])
    return tokenizer


def _trained(cut: Any, lines: list[str], size: int) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer, tokenizer.decoder = cut, decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=SPECIALS,
        show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer
