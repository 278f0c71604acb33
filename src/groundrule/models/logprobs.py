"""Log-probabilities of given answers after a shared prompt, with or without gradients."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from groundrule.models.chosen import chosen_logprobs
from groundrule.models.load import LanguageModel
from groundrule.models.prefix import Branches, Prefix, extend, record


def read_prompt(model: LanguageModel, prompt: Sequence[int]) -> Prefix:
    """The prompt's keys and values, to be shared by its answers."""
    return record(model.core, torch.tensor(prompt, device=model.device))


def answer_logprobs(
    model: LanguageModel,
    prefix: Prefix,
    answers: Sequence[Sequence[int]],
    *,
    leads: Sequence[Sequence[int]] | None = None,
    temperature: float = 1.0,
) -> list[torch.Tensor]:
    """log p(token | prompt, lead, answer so far) of every answer's tokens, each (tokens,), in float32.

    The prompt was computed once; only answer positions reach the output layer. `leads[i]` are
    tokens between the prompt and answer i that are read and not scored. `temperature` divides the
    logits first, as in sampling.
    """
    lengths = [len(a) for a in answers]
    if not lengths or min(lengths) == 0:
        raise ValueError(f"answers have {lengths} tokens; each needs at least one")
    leads = [()] * len(answers) if leads is None else leads
    rows = [[*lead, *answer] for lead, answer in zip(leads, answers, strict=True)]
    padded = torch.zeros(len(rows), max(map(len, rows)), dtype=torch.long, device=model.device)
    scored = torch.zeros_like(padded, dtype=torch.bool)
    # Padding stands behind each answer, where causal attention cannot see it from the answer.
    for i, row in enumerate(rows):
        padded[i, : len(row)] = torch.tensor(row, device=model.device)
        scored[i, len(leads[i]) : len(row)] = True
    hidden = prefix.last_hidden.expand(len(rows), 1, -1)
    if padded.shape[1] > 1:
        hidden = torch.cat(
            [hidden, extend(model.core, padded[:, :-1], Branches([prefix], [len(rows)]))], dim=1
        )
    return list(
        torch.split(chosen_logprobs(model.head, hidden[scored], padded[scored], temperature), lengths)
    )
