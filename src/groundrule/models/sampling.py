"""From logits to one token a row: temperature, penalties, top-k, top-p, min-p, and a random stream of its own.

A token is drawn as the winner of a race: weight / exponential noise, the largest wins, which is softmax sampling
(Gumbel-max, Maddison et al. 2014, in another form). Unlike a walk along cumulative sums it does not hang on the last
bits of the logits, so a seed gives the same text whatever else is in the batch.

The log-probability noted is that of the temperature alone: after it, and before biases, penalties, constraints and
filters, which is what a trainer computes again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch

from groundrule.models.noise import Noise


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
        repeats = self.presence_penalty or self.frequency_penalty or self.repetition_penalty != 1.0
        return bool(repeats or self.logit_bias)

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
    noise: Noise
    constraint: Constraint | None = None


def new_row(request: SamplingRequest) -> Row:
    """A row that has sampled nothing yet."""
    return Row(request, Sample(), Noise(request.seed), request.constraint and request.constraint())


def draw(logits: torch.Tensor, rows: Sequence[Row]) -> list[int]:
    """One token per row, noted on rows that are not done; float32 logits (rows, vocabulary)."""
    heat = torch.tensor([r.request.temperature or 1.0 for r in rows], device=logits.device)
    if not bool((heat == 1.0).all()):
        logits = logits / heat[:, None]
    top = logits.amax(-1, keepdim=True)
    weights = torch.exp(logits - top)
    totals = weights.sum(-1, keepdim=True).log_()
    live = [i for i, row in enumerate(rows) if not row.sample.done]
    chosen_from = weights.clone() if any(_is_special(rows[i]) for i in live) else weights
    for i in live:
        if _is_special(rows[i]):
            chosen_from[i] = _filtered(_steered(logits[i], rows[i]), rows[i].request)
    racing = [i for i in live if rows[i].request.temperature > 0]
    drawn = _race(chosen_from, {i: rows[i].noise for i in racing}).argmax(-1)
    logprobs = (logits.gather(-1, drawn[:, None]) - top - totals)[:, 0].tolist()
    tokens: list[int] = drawn.tolist()
    for i in live:
        _note(rows[i], tokens[i], logprobs[i], lambda i=i: logits[i] - top[i] - totals[i])  # type: ignore[misc]
    return tokens


def _race(weights: torch.Tensor, noise: Mapping[int, Noise]) -> torch.Tensor:
    """Weights over exponential noise in the rows that have some; the others as they are."""
    if not noise:
        return weights
    times = torch.ones_like(weights)
    for i, stream in noise.items():
        stream.fill(times[i])
    return weights / times


def _note(row: Row, token: int, logprob: float, all_logprobs: Callable[[], torch.Tensor]) -> None:
    sample = row.sample
    sample.token_ids.append(token)
    sample.logprobs.append(logprob)
    if row.request.top_logprobs:
        best = all_logprobs().topk(row.request.top_logprobs)
        sample.top_logprobs.append(list(zip(best.indices.tolist(), best.values.tolist(), strict=True)))
    if row.constraint is not None:
        row.constraint.take(token)


def _is_special(row: Row) -> bool:
    return row.request.is_penalised or row.request.is_filtered or row.constraint is not None


def _steered(logits: torch.Tensor, row: Row) -> torch.Tensor:
    """Logits (vocabulary,) with repeats made less likely, biases added, and minus infinity at what is forbidden."""
    logits = _penalised(logits, row)
    if row.request.logit_bias:
        ids, biases = zip(*row.request.logit_bias, strict=True)
        index = torch.tensor(ids, device=logits.device)
        logits = logits.index_add(0, index, torch.tensor(biases, device=logits.device, dtype=logits.dtype))
    allowed = row.constraint.allowed() if row.constraint is not None else None
    if allowed is not None:
        logits = logits.masked_fill(~allowed.to(logits.device), float("-inf"))
    return logits


def _penalised(logits: torch.Tensor, row: Row) -> torch.Tensor:
    """Logits (vocabulary,) with what was said before made less likely."""
    request = row.request
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
