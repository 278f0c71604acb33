"""Shared-prefix attention: a prompt is computed once, and any number of continuations attend to it.

Transformers lets a model use a registered attention function. Ours reads one extra keyword that
travels with the forward call and says what its tokens attend to. Those of sampling and training stand
beside what they serve (`reading.py`, `decoding.py`, `tree_forward.py`); here are the ones of judging: a
`Recording` keeps the keys and values of a prompt, `Branches` are continuations that attend to such a
prompt and to their own tokens, with nothing repeated per continuation.

Attention weights are computed as one softmax over (prompt, own tokens): softmax(q k^T * scale) of
Vaswani et al. 2017, section 3.2.1, split over two key blocks.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import torch
from torch.nn import functional

ATTENTION = "groundrule_prefix"


@dataclass
class Prefix:
    """Keys and values of one prompt: per layer (kv_heads, length, head_dim)."""

    keys: list[torch.Tensor]
    values: list[torch.Tensor]
    last_hidden: torch.Tensor
    """(hidden,): the final hidden state of the prompt's last token, which predicts the first answer token."""

    @property
    def length(self) -> int:
        return int(self.keys[0].shape[1])


@dataclass
class Recording:
    """Collects the keys and values of one prompt while it passes through the model."""

    keys: list[torch.Tensor] = field(default_factory=list)
    values: list[torch.Tensor] = field(default_factory=list)

    def attend(
        self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float
    ) -> torch.Tensor:
        if layer != len(self.keys):
            raise RuntimeError(
                f"layer {layer} came after {len(self.keys)} layers: this model shares or skips layers"
            )
        self.keys.append(k[0])
        self.values.append(v[0])
        return _causal(q, k, v, scale)


class Branches:
    """Continuations of prompts: `counts[i]` rows of the batch continue `prefixes[i]`, all in one pass."""

    def __init__(self, prefixes: list[Prefix], counts: list[int]) -> None:
        self.prefixes = prefixes
        self.counts = counts

    def positions(self, tokens: int) -> torch.Tensor:
        """Position ids of the tokens of every row: (rows, tokens)."""
        starts = [p.length for p, n in zip(self.prefixes, self.counts, strict=True) for _ in range(n)]
        device = self.prefixes[0].keys[0].device
        return torch.tensor(starts, device=device)[:, None] + torch.arange(tokens, device=device)

    def attend(
        self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float
    ) -> torch.Tensor:
        rows, heads, tokens, dim = q.shape
        kv_heads, repeat = k.shape[1], heads // k.shape[1]
        grouped = q.reshape(rows, kv_heads, repeat * tokens, dim)
        own = (grouped @ k.transpose(2, 3)).view(rows, kv_heads, repeat, tokens, tokens)
        later = torch.ones(tokens, tokens, dtype=torch.bool, device=q.device).triu(1)
        own = own.masked_fill(later, float("-inf")).reshape(rows, kv_heads, repeat * tokens, tokens)
        outputs, start = [], 0
        for prefix, count in zip(self.prefixes, self.counts, strict=True):
            part = slice(start, start + count)
            outputs.append(
                _join(grouped[part], own[part], v[part], prefix.keys[layer], prefix.values[layer], scale)
            )
            start += count
        return torch.cat(outputs).view(rows, heads, tokens, dim)


def _join(
    q: torch.Tensor,
    own: torch.Tensor,
    v: torch.Tensor,
    prefix_k: torch.Tensor,
    prefix_v: torch.Tensor,
    scale: float,
) -> torch.Tensor:
    """One softmax over a shared prompt and own tokens; q (n, kv, r, d), own scores (n, kv, r, s)."""
    n, kv_heads, r, dim = q.shape
    length = prefix_k.shape[1]
    flat = q.transpose(0, 1).reshape(kv_heads, n * r, dim)
    shared = (flat @ prefix_k.transpose(1, 2)).view(kv_heads, n, r, length).transpose(0, 1)
    weights = torch.softmax(torch.cat([shared, own], dim=-1).mul(scale), dim=-1, dtype=torch.float32).to(
        q.dtype
    )
    from_shared = weights[..., :length].transpose(0, 1).reshape(kv_heads, n * r, length) @ prefix_v
    return from_shared.view(kv_heads, n, r, dim).transpose(0, 1) + weights[..., length:] @ v


def _causal(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float) -> torch.Tensor:
    return functional.scaled_dot_product_attention(
        q, k, v, is_causal=q.shape[2] > 1, scale=scale, enable_gqa=q.shape[1] != k.shape[1]
    )


class PrefixState(Protocol):
    """What the tokens of a forward call attend to."""

    def attend(
        self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float
    ) -> torch.Tensor: ...


def prefix_attention(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    scaling: float | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    prefix_state: PrefixState | None = None,
    **_: Any,
) -> tuple[torch.Tensor, None]:
    """The function that transformers calls in every layer; without a state it is plain causal attention."""
    if softcap is not None or s_aux is not None:
        raise RuntimeError("its attention caps its scores or has sinks, which this attention does not know")
    scale = query.shape[-1] ** -0.5 if scaling is None else scaling
    if prefix_state is None:
        output = _causal(query, key, value, scale)
    else:
        output = prefix_state.attend(int(module.layer_idx), query, key, value, scale)  # type: ignore[arg-type]
    return output.transpose(1, 2), None


def install(model: Any) -> None:
    """Make a transformers model use this attention."""
    from transformers import AttentionInterface

    AttentionInterface.register(ATTENTION, prefix_attention)
    model.set_attn_implementation(ATTENTION)


def record(core: Any, prompt: torch.Tensor) -> Prefix:
    """Run one prompt, ids (length,), through the model body and keep its keys and values."""
    state = Recording()
    hidden = core(
        input_ids=prompt[None], position_ids=torch.arange(len(prompt), device=prompt.device)[None],
        use_cache=False, prefix_state=state,
    ).last_hidden_state  # fmt: skip
    return Prefix(state.keys, state.values, hidden[0, -1])


def extend(core: Any, tokens: torch.Tensor, branches: Branches) -> torch.Tensor:
    """Run the next tokens, ids (rows, tokens), of all branches; hidden states (rows, tokens, hidden)."""
    hidden: torch.Tensor = core(
        input_ids=tokens,
        position_ids=branches.positions(tokens.shape[1]),
        use_cache=False,
        prefix_state=branches,
    ).last_hidden_state
    return hidden
