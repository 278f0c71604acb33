"""A number instead of a next token: a linear layer on the last hidden state, for reward models."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from groundrule.models.load import LanguageModel
from groundrule.models.tree import Path, Wanted
from groundrule.models.tree_forward import Readout

_NOTHING = -1
"""Stands behind a sequence where a value is wanted of its last token, and never passes through the model."""


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
