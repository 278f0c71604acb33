"""Reading a prompt: its keys and values, in pieces, behind what is known of it already."""

from __future__ import annotations

import torch
from torch.nn import functional

from groundrule.models.key_values import KeyValues, joined
from groundrule.models.load import LanguageModel
from groundrule.models.prefix_cache import PrefixCache


class Reading:
    """One prompt that is being read; `advance` until it is `done`."""

    def __init__(self, ids: tuple[int, ...], cache: PrefixCache) -> None:
        known = cache.match(ids)
        self.ids = ids
        self.prompt = joined(known.parts) if known.parts else None
        """Keys and values of what is read so far."""
        self.hidden = known.hidden
        """(width,): the final hidden state of the last token, from which the first one is drawn."""
        self.cached = known.tokens
        """Tokens that did not have to be computed."""
        self._cache = cache
        self._at = known.tokens

    @property
    def done(self) -> bool:
        return self.hidden is not None

    def advance(self, model: LanguageModel, most: int) -> int:
        """Compute at most so many tokens; returns how many it were."""
        piece = self.ids[self._at : self._at + most]
        past = self.prompt
        pass_ = _Pass(past)
        place = torch.arange(self._at, self._at + len(piece), device=model.device)
        hidden = model.core(
            input_ids=torch.tensor([piece], device=model.device), position_ids=place[None],
            use_cache=False, prefix_state=pass_,
        ).last_hidden_state[0, -1]  # fmt: skip
        new = KeyValues(pass_.keys, pass_.values)
        self.prompt = new if past is None else joined([past, new])
        self._at += len(piece)
        if self._at == len(self.ids):
            self.hidden = hidden
            self._cache.insert(self.ids, self.prompt, hidden)
        return len(piece)


class _Pass:
    """One forward pass of a prompt's next tokens behind its past, keeping their keys and values."""

    def __init__(self, past: KeyValues | None) -> None:
        self.past = past
        self.keys: list[torch.Tensor] = []
        self.values: list[torch.Tensor] = []
        self._mask: torch.Tensor | None = None

    def attend(
        self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float
    ) -> torch.Tensor:
        self.keys.append(k[0])
        self.values.append(v[0])
        grouped = q.shape[1] != k.shape[1]
        if self.past is None:
            return functional.scaled_dot_product_attention(
                q, k, v, is_causal=q.shape[2] > 1, scale=scale, enable_gqa=grouped
            )
        k = torch.cat([self.past.keys[layer][None], k], dim=2)
        v = torch.cat([self.past.values[layer][None], v], dim=2)
        return functional.scaled_dot_product_attention(
            q, k, v, attn_mask=self._seen(q, k), scale=scale, enable_gqa=grouped
        )

    def _seen(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        if self._mask is None:
            new, whole = q.shape[2], k.shape[2]
            self._mask = torch.ones(new, whole, dtype=torch.bool, device=q.device).tril(whole - new)
        return self._mask
