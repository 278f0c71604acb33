"""Sampling: many requests decoded together, each distinct prompt computed once.

Every row draws from its own random stream, so a request with a seed gives the same text whatever
else is in the batch (up to the last bits of floating point arithmetic).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import torch

from groundrule.models.load import LanguageModel
from groundrule.models.prefix import Branches, Prefix, extend, record


@dataclass(frozen=True)
class SamplingRequest:
    """One answer to be sampled."""

    prompt_ids: tuple[int, ...]
    max_tokens: int
    temperature: float = 1.0
    """0 means greedy."""
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    seed: int = 0


@dataclass
class Sample:
    """What was sampled: ids with the log-probabilities of the distribution that they were drawn from.

    `logprobs` are those after the temperature and before top-p (for greedy: temperature 1), which
    is what the trainer computes again.
    """

    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    text: str = ""
    finish_reason: str = "length"


@dataclass
class _Row:
    request: SamplingRequest
    sample: Sample
    random: random.Random
    done: bool = False


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
                [_Row(requests[i], samples[i], random.Random(requests[i].seed)) for i in chunk],
                on_step,
            )
    return samples


def _neighbours(requests: Sequence[SamplingRequest]) -> list[int]:
    """Request indices with those of one prompt side by side, prompts in order of first appearance."""
    by_prompt: dict[tuple[int, ...], list[int]] = {}
    for index, request in enumerate(requests):
        by_prompt.setdefault(request.prompt_ids, []).append(index)
    return [index for indices in by_prompt.values() for index in indices]


def _decode(model: LanguageModel, rows: list[_Row], on_step: Callable[[int], None] | None) -> None:
    prefixes, counts = _read_prompts(model, rows)
    longest = max(row.request.max_tokens for row in rows)
    branches = Branches(prefixes, counts, capacity=longest)
    hidden = torch.stack([p.last_hidden for p, n in zip(prefixes, counts, strict=True) for _ in range(n)])
    while True:
        tokens = _sample(model.head(hidden).float(), rows)
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


def _read_prompts(model: LanguageModel, rows: list[_Row]) -> tuple[list[Prefix], list[int]]:
    counts: dict[tuple[int, ...], int] = {}
    for row in rows:
        counts[row.request.prompt_ids] = counts.get(row.request.prompt_ids, 0) + 1
    prefixes = [record(model.core, torch.tensor(prompt, device=model.device)) for prompt in counts]
    return prefixes, list(counts.values())


def _sample(logits: torch.Tensor, rows: list[_Row]) -> list[int]:
    """One token per row; its log-probability is noted on rows that are not done. Logits (rows, vocabulary)."""
    heat = torch.tensor([r.request.temperature or 1.0 for r in rows], device=logits.device)
    logits = logits / heat[:, None]
    total = torch.logsumexp(logits, dim=-1)
    weights = torch.exp(logits - total[:, None])
    for i, row in enumerate(rows):
        if row.request.top_p < 1.0 and row.request.temperature > 0:
            weights[i] = _nucleus(weights[i], row.request.top_p)
    # Inverse transform sampling: one uniform number a row, one cumulative sum over the vocabulary.
    steps = weights.cumsum(-1)
    points = torch.tensor([r.random.random() for r in rows], device=logits.device)[:, None] * steps[:, -1:]
    # Rounding may lift a number to the whole sum, behind which there is no token.
    points = torch.minimum(points, torch.nextafter(steps[:, -1:], torch.zeros_like(points)))
    drawn = torch.searchsorted(steps, points, right=True)[:, 0]
    greedy = torch.tensor([r.request.temperature == 0 for r in rows], device=logits.device)
    if bool(greedy.any()):
        drawn = torch.where(greedy, logits.argmax(-1), drawn)
    logprobs = (logits.gather(-1, drawn[:, None])[:, 0] - total).tolist()
    tokens: list[int] = drawn.tolist()
    for row, token, logprob in zip(rows, tokens, logprobs, strict=True):
        if not row.done:
            row.sample.token_ids.append(token)
            row.sample.logprobs.append(logprob)
    return tokens


def _nucleus(weights: torch.Tensor, top_p: float) -> torch.Tensor:
    """Zero all but the smallest set of most likely tokens that holds `top_p` of the mass (Holtzman et al. 2019)."""
    ordered, index = weights.sort(descending=True)
    before = ordered.cumsum(-1) - ordered
    kept = torch.zeros_like(weights)
    keep = before < top_p
    kept[index[keep]] = ordered[keep]
    return kept


def _take(model: LanguageModel, rows: list[_Row], tokens: list[int]) -> None:
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


def _stop_at(model: LanguageModel, row: _Row) -> str | None:
    text = _text(model, row.sample.token_ids)
    places = [text.find(s) for s in row.request.stop if s in text]
    return text[: min(places)] if places else None


def _text(model: LanguageModel, ids: list[int]) -> str:
    text: str = model.tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    return text
