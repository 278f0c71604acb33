"""Sampling: many requests decoded together, each distinct prompt computed once.

Every row draws from its own random stream, so a request with a seed gives the same text whatever
else is in the batch (up to the last bits of floating point arithmetic).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import torch

from groundrule.models.load import LanguageModel
from groundrule.models.prefix import Branches, Prefix, extend, record
from groundrule.models.sampling import Row, Sample, SamplingRequest, draw


def generate(
    model: LanguageModel,
    requests: Sequence[SamplingRequest],
    *,
    max_rows: int = 64,
    on_step: Callable[[int], None] | None = None,
) -> list[Sample]:
    """Samples in request order. `on_step` hears how many rows got a token. Hold the model's lock."""
    samples = [Sample() for _ in requests]
    order = _neighbours(requests)
    with torch.inference_mode():
        for start in range(0, len(order), max_rows):
            chunk = order[start : start + max_rows]
            _decode(
                model,
                [Row(requests[i], samples[i], random.Random(requests[i].seed)) for i in chunk],
                on_step,
            )
    return samples


def _neighbours(requests: Sequence[SamplingRequest]) -> list[int]:
    """Request indices with those of one prompt side by side, prompts in order of first appearance."""
    by_prompt: dict[tuple[int, ...], list[int]] = {}
    for index, request in enumerate(requests):
        by_prompt.setdefault(request.prompt_ids, []).append(index)
    return [index for indices in by_prompt.values() for index in indices]


def _decode(model: LanguageModel, rows: list[Row], on_step: Callable[[int], None] | None) -> None:
    prefixes, counts = _read_prompts(model, rows)
    longest = max(row.request.max_tokens for row in rows)
    branches = Branches(prefixes, counts, capacity=longest)
    hidden = torch.stack([p.last_hidden for p, n in zip(prefixes, counts, strict=True) for _ in range(n)])
    while True:
        tokens = draw(model.head(hidden).float(), rows)
        _take(model, rows, tokens)
        if on_step is not None:
            on_step(sum(1 for row in rows if not row.done))
        alive = [i for i, row in enumerate(rows) if not row.done]
        if not alive:
            return
        if branches.length and len(alive) <= 0.875 * len(rows):
            branches.keep(alive)
            rows, tokens = [rows[i] for i in alive], [tokens[i] for i in alive]
        hidden = extend(model.core, torch.tensor(tokens, device=model.device)[:, None], branches)[:, -1]


def _read_prompts(model: LanguageModel, rows: list[Row]) -> tuple[list[Prefix], list[int]]:
    counts: dict[tuple[int, ...], int] = {}
    for row in rows:
        counts[row.request.prompt_ids] = counts.get(row.request.prompt_ids, 0) + 1
    prefixes = [record(model.core, torch.tensor(prompt, device=model.device)) for prompt in counts]
    return prefixes, list(counts.values())


def _take(model: LanguageModel, rows: list[Row], tokens: list[int]) -> None:
    """Finish rows that met an end token, a stop string or their limit."""
    for row, token in zip(rows, tokens, strict=True):
        if row.done:
            continue
        sample = row.sample
        if token in model.eos_ids:
            row.done, sample.finish_reason = True, "stop"
        elif row.request.stop and (cut := _stop_at(model, row)) is not None:
            row.done, sample.finish_reason, sample.text = True, "stop", cut
            continue
        elif len(sample.token_ids) >= row.request.max_tokens:
            row.done = True
        if row.done:
            ended = sample.finish_reason == "stop"
            sample.text = _text(model, sample.token_ids[:-1] if ended else sample.token_ids)


def _stop_at(model: LanguageModel, row: Row) -> str | None:
    text = _text(model, row.sample.token_ids)
    places = [text.find(s) for s in row.request.stop if s in text]
    return text[: min(places)] if places else None


def _text(model: LanguageModel, ids: list[int]) -> str:
    text: str = model.tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    return text
