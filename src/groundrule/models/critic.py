"""A critic: how good the end will be, told before each token of the policy is sampled.

It is a causal language model with an adapter and a scalar head of its own. The base may be the policy's, whose adapter
is off while the critic speaks, or another model in memory.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

from groundrule.models.load import LanguageModel
from groundrule.models.lora import LoraSettings
from groundrule.models.scalar_model import ScalarModel, new_adapter, zero_head
from groundrule.models.tree import TokenTree


@dataclass(eq=False)
class Critic(ScalarModel):
    """Reads a token tree: where a path has a scored token, the value of the state before that token."""

    adapter: str

    def values(self, tree: TokenTree, *, tokens_at_once: int) -> list[torch.Tensor]:
        """Of every path, before each scored token: each (scored,), without gradients."""
        return self.numbers(tree, tokens_at_once=tokens_at_once)


def new_critic(model: LanguageModel, lora: LoraSettings, *, seed: int) -> Critic:
    """One that expects 0 everywhere."""
    return Critic(model, new_adapter(model, lora, seed=seed, name="critic"), zero_head(model))
