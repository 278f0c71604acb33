"""A number instead of a next token: a causal language model with a linear layer and an adapter of its own.

What a reward model and a critic are made of. The base may be shared with a policy and with other judges; the adapter
is on only while numbers are computed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from groundrule.models.load import LanguageModel
from groundrule.models.lora import LoraSettings, adapter_parameters, add_adapter, unused_name, using_adapter
from groundrule.models.tree import Path, TokenTree, Wanted
from groundrule.models.tree_forward import Readout
from groundrule.models.tree_pass import all_numbers

_NOTHING = -1
"""Stands behind a sequence where a value is wanted of its last token, and never passes through the model."""


@dataclass(eq=False)
class ScalarModel:
    """Reads a number for every scored token of a token tree."""

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

    def numbers(self, tree: TokenTree, *, tokens_at_once: int) -> list[torch.Tensor]:
        """Of every path, each (scored,), without gradients."""
        with self.switched_on():
            return all_numbers(self.model, tree, tokens_at_once=tokens_at_once, read=self.read)


def new_adapter(model: LanguageModel, lora: LoraSettings, *, seed: int, name: str) -> str:
    """Put one on the model and return its name; where that is taken, a number is put behind it."""
    with model.lock:
        free = unused_name(model, name)
        add_adapter(model, lora, seed=seed, name=free)
    return free


def zero_head(model: LanguageModel) -> torch.nn.Linear:
    """(width,) -> (1,) in float32, all zeros: every first value is 0, and a preference loss begins at log 2.

    It has no bias: preferences see differences of values only, so nothing would ever train one.
    """
    head = torch.nn.Linear(model.head.weight.shape[1], 1, bias=False, device=model.device)
    torch.nn.init.zeros_(head.weight)
    return head


def value_path(ids: Sequence[int]) -> Path:
    """A sequence, and the wish for the value at its last token."""
    return Path((*ids, _NOTHING), (len(ids),))


def values_by(head: torch.nn.Linear) -> Readout:
    """Reads the head's value of each hidden state, in float32."""

    def read(hidden: torch.Tensor, _: Sequence[Wanted]) -> torch.Tensor:
        return (hidden.to(head.weight.dtype) @ head.weight[0]).float()

    return read
