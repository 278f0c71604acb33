"""What the endpoint answers: whole replies and the chunks of a stream.

Choices carry token ids, the prompt's ids, log-probabilities and how they were sampled, asked or not: agents hand them
on to the trainer as they are.
"""

from __future__ import annotations

import math
import re
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from groundrule.inference.schema import ChatCompletionBody
from groundrule.inference.tool_calls import Parsed, parse_tool_calls
from groundrule.models.sampling import Sample

NO_CHANCE = -9999.0
"""Stands for a log-probability of minus infinity, which JSON cannot write."""


def completion(
    body: ChatCompletionBody, prompt_ids: list[int], samples: list[Sample], tokenizer: Any, version: int
) -> dict[str, Any]:
    """The whole reply to a request that asked for no stream."""
    return {
        **envelope(body, "chat.completion"),
        "choices": [_choice(i, s, body, prompt_ids, tokenizer, version) for i, s in enumerate(samples)],
        "usage": usage(prompt_ids, samples),
    }


def envelope(body: ChatCompletionBody, kind: str) -> dict[str, Any]:
    """What a reply and each chunk of one stream begin with."""
    name = f"chatcmpl-{uuid.uuid4().hex}"
    return {"id": name, "object": kind, "created": int(time.time()), "model": body.model}


def usage(prompt_ids: Sequence[int], samples: Sequence[Sample]) -> dict[str, int]:
    """Tokens read and sampled; the prompt counts once, however many answers it got."""
    sampled = sum(len(s.token_ids) for s in samples)
    return {
        "prompt_tokens": len(prompt_ids),
        "completion_tokens": sampled,
        "total_tokens": len(prompt_ids) + sampled,
    }


def taken_apart(body: ChatCompletionBody, text: str) -> Parsed:
    """Text and calls of an answer, as far as the request offers tools."""
    if not body.offers_tools:
        return Parsed(text, [])
    parsed = parse_tool_calls(text, body.tool_dicts)
    return parsed if body.parallel_tool_calls else Parsed(parsed.content, parsed.calls[:1])


def finish_reason(parsed: Parsed, sample: Sample) -> str:
    """An answer that was cut says so, whatever calls are in it."""
    return "tool_calls" if parsed.calls and sample.finish_reason == "stop" else sample.finish_reason


def provenance(body: ChatCompletionBody, prompt_ids: list[int], version: int) -> dict[str, Any]:
    """What the trainer wants to know of a choice beside its tokens."""
    return {
        "prompt_token_ids": prompt_ids,
        "sampling": {"temperature": body.temperature, "top_p": body.top_p},
        "policy_version": version,
    }


def _choice(
    index: int, sample: Sample, body: ChatCompletionBody, prompt_ids: list[int], tokenizer: Any, version: int
) -> dict[str, Any]:
    parsed = taken_apart(body, sample.text)
    message: dict[str, Any] = {"role": "assistant", "content": parsed.content}
    if parsed.calls:
        message["tool_calls"] = [call.as_message_part() for call in parsed.calls]
    return {
        "index": index,
        "message": message,
        "finish_reason": finish_reason(parsed, sample),
        "logprobs": {"content": list(token_logprobs(sampled_tokens(sample), tokenizer))},
        "token_ids": sample.token_ids,
        **provenance(body, prompt_ids, version),
    }


@dataclass(frozen=True)
class SampledToken:
    """One token of an answer, and the likeliest ones in its place where they were asked for."""

    id: int
    logprob: float
    likeliest: list[tuple[int, float]]


def sampled_tokens(sample: Sample, start: int = 0) -> list[SampledToken]:
    """The tokens of an answer from `start` on."""
    tops = sample.top_logprobs[start:] or [[]] * len(sample.token_ids)
    pairs = zip(sample.token_ids[start:], sample.logprobs[start:], tops, strict=False)
    return [SampledToken(*each) for each in pairs]


def token_logprobs(tokens: Sequence[SampledToken], tokenizer: Any) -> Iterator[dict[str, Any]]:
    """The tokens as OpenAI writes them."""
    for token in tokens:
        likeliest = [_token(tokenizer, *pair) for pair in token.likeliest]
        yield {**_token(tokenizer, token.id, token.logprob), "top_logprobs": likeliest}


def _token(tokenizer: Any, token_id: int, logprob: float) -> dict[str, Any]:
    text = tokenizer.decode([token_id])
    written = logprob if math.isfinite(logprob) else NO_CHANCE
    return {"token": text, "logprob": written, "bytes": list(_bytes(tokenizer, token_id, text))}


_BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")


def _bytes(tokenizer: Any, token_id: int, text: str) -> bytes:
    """What the token adds to a text. A part of a character has no text of its own, but bytes."""
    if "�" not in text:
        return text.encode()
    piece = str(tokenizer.convert_ids_to_tokens(token_id))
    if named := _BYTE_PIECE.fullmatch(piece):
        return bytes.fromhex(named[1])
    letters = _byte_letters()
    return bytes(letters[c] for c in piece) if all(c in letters for c in piece) else text.encode()


def _byte_letters() -> dict[str, int]:
    """Byte-level tokenizers write every byte as one printable letter: its own, or one from 256 on."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {**{chr(b): b for b in printable}, **{chr(256 + i): b for i, b in enumerate(others)}}
