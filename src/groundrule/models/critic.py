"""A critic: how good the end will be, told before each token of the policy is sampled.

It is a causal language model with an adapter and a scalar head of its own. The base may be the policy's, whose adapter
is off while the critic speaks, or another model in memory.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

import torch

from groundrule.models.load import LanguageModel
from groundrule.models.lora import LoraSettings, adapter_parameters, add_adapter, unused_name, using_adapter
from groundrule.models.scalar_head import values_by, zero_head
from groundrule.models.tree import TokenTree
from groundrule.models.tree_forward import Readout
from groundrule.models.tree_pass import all_numbers


@dataclass(eq=False)
class Critic:
    """Reads a token tree: where a path has a scored token, the value of the state before that token."""

    model: LanguageModel
    adapter: str
    """The adapter's name on the model."""
    head: torch.nn.Linear

    @property
    def read(self) -> Readout:
        """Hidden states -> values."""
        return values_by(self.head)

    def parameters(self) -> dict[str, torch.Tensor]:
        """What is trained, by name, in a fixed order."""
        return {**adapter_parameters(self.model, self.adapter), "head.weight": self.head.weight}

    @contextlib.contextmanager
    def switched_on(self) -> Iterator[None]:
        """Inside, the model computes what the head is trained on, and nobody else uses it."""
        with self.model.lock, using_adapter(self.model, self.adapter):
            yield

    def values(self, tree: TokenTree, *, tokens_at_once: int) -> list[torch.Tensor]:
        """Of every path, before each scored token: each (scored,), without gradients."""
        with self.switched_on():
            return all_numbers(self.model, tree, tokens_at_once=tokens_at_once, read=self.read)


def new_critic(model: LanguageModel, lora: LoraSettings, *, seed: int) -> Critic:
    """One that expects 0 everywhere."""
    with model.lock:
        adapter = unused_name(model, "critic")
        add_adapter(model, lora, seed=seed, name=adapter)
    return Critic(model, adapter, zero_head(model))
