"""A frozen language model as the likelihood judge wants it: conversations in, token logprobs out."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from groundrule.models.load import LanguageModel
from groundrule.models.logprobs import answer_logprobs, read_prompt
from groundrule.rewards.likelihood import Continuation, TokenLogprobs

ROWS_AT_ONCE = 32


class FrozenTextModel:
    """Any loaded model with its adapter switched off."""

    def __init__(self, model: LanguageModel) -> None:
        self.model = model

    def logprobs(self, continuations: Sequence[Continuation]) -> list[TokenLogprobs]:
        """Token logprobs of each text, in order; equal ones are computed once."""
        renderer, tokenizer = self.model.renderer, self.model.tokenizer
        pairs = [
            (tuple(renderer.prompt_ids(c.messages)), tuple(renderer.text_ids(c.text))) for c in continuations
        ]
        # Only conversations that begin alike can share a prefix.
        by_start: dict[int, list[tuple[tuple[int, ...], tuple[int, ...]]]] = {}
        for pair in dict.fromkeys(pairs):
            by_start.setdefault(pair[0][0], []).append(pair)
        known: dict[tuple[tuple[int, ...], tuple[int, ...]], list[float]] = {}
        with torch.inference_mode(), self.model.lock, self.model.base_only():
            for alike in by_start.values():
                known.update(zip(alike, self._run(alike), strict=True))
        return [
            TokenLogprobs([tokenizer.decode([i]) for i in ids], known[prompt, ids]) for prompt, ids in pairs
        ]

    def _run(self, pairs: list[tuple[tuple[int, ...], tuple[int, ...]]]) -> list[list[float]]:
        shared = _common_prefix([prompt for prompt, _ in pairs])
        prefix = read_prompt(self.model, shared)
        results: list[list[float]] = []
        for start in range(0, len(pairs), ROWS_AT_ONCE):
            piece = pairs[start : start + ROWS_AT_ONCE]
            leads = [prompt[len(shared) :] for prompt, _ in piece]
            rows = answer_logprobs(self.model, prefix, [ids for _, ids in piece], leads=leads)
            results += [row.tolist() for row in rows]
        return results


def _common_prefix(prompts: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The tokens that all prompts begin with."""
    first, last = min(prompts), max(prompts)
    length = next(
        (i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), min(len(first), len(last))
    )
    return first[:length]
