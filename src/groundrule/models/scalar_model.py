"""A number instead of a next token: a causal language model with a linear layer and an adapter of its own.

What a reward model and a critic are made of. The base may be shared with a policy and with other judges; the adapter
is on only while numbers are computed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from groundrule.errors import ConfigError
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
    adapter: str | None
    """The adapter's name on the model; None: all weights are its own, and no other adapter is on the model."""
    head: torch.nn.Linear

    @property
    def read(self) -> Readout:
        """Hidden states -> values."""
        return values_by(self.head)

    def parameters(self) -> dict[str, torch.Tensor]:
        """What is trained, by name, in a fixed order."""
        own = (
            own_weights(self.model) if self.adapter is None else adapter_parameters(self.model, self.adapter)
        )
        return {**own, "head.weight": self.head.weight}

    @contextlib.contextmanager
    def switched_on(self) -> Iterator[None]:
        """Inside, the model computes what the head is trained on, and nobody else uses it."""
        if self.adapter is None:
            with self.model.lock:
                yield
            return
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


def own_weights(model: LanguageModel) -> dict[str, torch.nn.Parameter]:
    """All weights of the body by name, in a fixed order; the output layer is no part of it, unless it is tied."""
    return dict(sorted(model.core.named_parameters()))


def check_own(model: LanguageModel) -> None:
    """Raise `ConfigError` where training all weights would change somebody else's model, or hardly anything."""
    if hasattr(model.network, "peft_config"):
        raise ConfigError(
            f"{model.name} carries an adapter, so others use its weights; training all of them takes a model of its "
            "own: load it anew"
        )
    types = {p.dtype for p in own_weights(model).values()}
    if types != {torch.float32}:
        raise ConfigError(
            f"the weights of {model.name} are {', '.join(sorted(map(str, types)))}, in which small steps are lost; "
            "load it with dtype=torch.float32, or train an adapter"
        )


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
