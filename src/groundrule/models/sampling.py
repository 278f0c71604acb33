"""From logits to one token a row: temperature, penalties, top-k, top-p, min-p, and a random stream of its own.

The log-probability noted is that of the temperature alone: after it, and before penalties and filters, which is what
a trainer computes again. Rows without penalties and filters cost one maximum, one exponential and one cumulative sum
over the vocabulary.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch


class Constraint(Protocol):
    """Which tokens may come next in one answer."""

    def allowed(self) -> torch.Tensor | None:
        """(vocabulary,) True where a token may come; None: all may."""
        ...

    def take(self, token: int) -> None:
        """This token came."""
        ...


@dataclass(frozen=True)
class SamplingRequest:
    """One answer to be sampled."""

    prompt_ids: tuple[int, ...]
    max_tokens: int
    temperature: float = 1.0
    """0 means greedy."""
    top_p: float = 1.0
    """The smallest set of most likely tokens that holds this share (Holtzman et al. 2019)."""
    top_k: int = 0
    """The most likely tokens; 0: all."""
    min_p: float = 0.0
    """Tokens at least this share as likely as the likeliest (Nguyen et al. 2024)."""
    presence_penalty: float = 0.0
    """Taken off the logits of tokens that were sampled before."""
    frequency_penalty: float = 0.0
    """Taken off once for each time that a token was sampled."""
    repetition_penalty: float = 1.0
    """Logits of tokens in prompt and answer are divided by it, or multiplied where negative (Keskar et al. 2019)."""
    logit_bias: tuple[tuple[int, float], ...] = ()
    """Added to the logits of these tokens."""
    stop: tuple[str, ...] = ()
    seed: int = 0
    top_logprobs: int = 0
    """How many of the likeliest tokens to note beside each sampled one."""
    constraint: Callable[[], Constraint] | None = None
    """Makes what decides, token by token, which may come next (a grammar)."""

    @property
    def is_penalised(self) -> bool:
        return bool(self.presence_penalty or self.frequency_penalty or self.repetition_penalty != 1.0)

    @property
    def is_filtered(self) -> bool:
        return self.temperature > 0 and bool(self.top_p < 1.0 or self.top_k or self.min_p)


@dataclass
class Sample:
    """What was sampled: ids with the log-probabilities of the distribution that they were drawn from.

    `logprobs` are those after the temperature and before penalties and filters (for greedy: temperature 1).
    """

    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    text: str = ""
    """While the answer grows: what will not be taken back. The start of a stop string is held back."""
    finish_reason: str = "length"
    top_logprobs: list[list[tuple[int, float]]] = field(default_factory=list)
    """Per token the likeliest (id, log-probability), most likely first, where they were asked for."""
    done: bool = False


@dataclass
class Row:
    """One answer under way."""

    request: SamplingRequest
    sample: Sample
    random: random.Random
    done: bool = False


def draw(logits: torch.Tensor, rows: Sequence[Row]) -> list[int]:
    """One token per row; its log-probability is noted on rows that are not done. Logits (rows, vocabulary)."""
    heat = torch.tensor([r.request.temperature or 1.0 for r in rows], device=logits.device)
    if not bool((heat == 1.0).all()):
        logits = logits / heat[:, None]
    top = logits.amax(-1, keepdim=True)
    steps = torch.exp(logits - top).cumsum(-1)
    totals = steps[:, -1:]
    chosen_from = logits
    special = [i for i, r in enumerate(rows) if r.request.is_penalised or r.request.is_filtered]
    if special:
        chosen_from, steps = logits.clone(), steps.clone()
        for i in special:
            chosen_from[i] = _penalised(logits[i], rows[i])
            steps[i] = _filtered(chosen_from[i], rows[i].request).cumsum(-1)
    points = torch.tensor([r.random.random() for r in rows], device=logits.device)[:, None] * steps[:, -1:]
    # Rounding may lift a number to the whole sum, behind which there is no token.
    points = torch.minimum(points, torch.nextafter(steps[:, -1:], torch.zeros_like(points)))
    drawn = torch.searchsorted(steps, points, right=True)[:, 0]
    greedy = torch.tensor([r.request.temperature == 0 for r in rows], device=logits.device)
    if bool(greedy.any()):
        drawn = torch.where(greedy, chosen_from.argmax(-1), drawn)
    logprobs = (logits.gather(-1, drawn[:, None]) - top - totals.log())[:, 0].tolist()
    tokens: list[int] = drawn.tolist()
    for row, token, logprob in zip(rows, tokens, logprobs, strict=True):
        if not row.done:
            row.sample.token_ids.append(token)
            row.sample.logprobs.append(logprob)
    return tokens


def _penalised(logits: torch.Tensor, row: Row) -> torch.Tensor:
    """Logits (vocabulary,) with what was said before made less likely."""
    request = row.request
    if not request.is_penalised:
        return logits
    logits = logits.clone()
    if request.repetition_penalty != 1.0:
        seen = torch.tensor(sorted({*request.prompt_ids, *row.sample.token_ids}), device=logits.device)
        old = logits[seen]
        logits[seen] = torch.where(
            old > 0, old / request.repetition_penalty, old * request.repetition_penalty
        )
    counts = Counter(row.sample.token_ids)
    if counts and (request.presence_penalty or request.frequency_penalty):
        said = torch.tensor(list(counts), device=logits.device)
        times = torch.tensor(list(counts.values()), device=logits.device, dtype=logits.dtype)
        logits[said] -= request.presence_penalty + request.frequency_penalty * times
    return logits


def _filtered(logits: torch.Tensor, request: SamplingRequest) -> torch.Tensor:
    """Weights (vocabulary,), zero for tokens that top-k, min-p and top-p leave out, applied in this order."""
    weights = torch.exp(logits - logits.amax())
    if not request.is_filtered:
        return weights
    if request.min_p:
        weights = torch.where(weights >= request.min_p, weights, torch.zeros_like(weights))
    if request.top_k and request.top_k < len(weights):
        best = weights.topk(request.top_k)
        weights = torch.zeros_like(weights).index_put((best.indices,), best.values)
    return _nucleus(weights / weights.sum(), request.top_p) if request.top_p < 1.0 else weights


def _nucleus(weights: torch.Tensor, top_p: float) -> torch.Tensor:
    """Zero all but the smallest set of most likely tokens that holds `top_p` of the mass.

    The likeliest few hundred hold it nearly always, so the whole vocabulary is sorted only where they do not.
    """
    best = weights.topk(min(_USUALLY_ENOUGH, len(weights)))
    ordered, index = best.values, best.indices
    if float(ordered.sum()) < top_p:
        ordered, index = weights.sort(descending=True)
    keep = ordered.cumsum(-1) - ordered < top_p
    return torch.zeros_like(weights).index_put((index[keep],), ordered[keep])


_USUALLY_ENOUGH = 256
