"""A stream of exponential noise for one answer: the same for a seed, whatever else is sampled."""

from __future__ import annotations

import numpy as np
import torch

_LEAST = 1e-30
"""Above zero in float32: nothing is divided by 0."""


class Noise:
    """Independent Exp(1) numbers. The streams of a CPU and of an accelerator differ."""

    def __init__(self, seed: int) -> None:
        self.seed = seed % 2**63
        self._numbers: np.random.Generator | None = None
        self._on_device: torch.Generator | None = None

    def fill(self, row: torch.Tensor) -> None:
        """The next numbers of the stream into a float32 tensor (length,)."""
        if row.device.type != "cpu":
            if self._on_device is None:
                self._on_device = torch.Generator(row.device).manual_seed(self.seed)
            row.exponential_(generator=self._on_device).clamp_(min=_LEAST)
            return
        if self._numbers is None:
            self._numbers = np.random.Generator(np.random.SFC64(self.seed))
        # In float64: the grid of float32 would let tokens win that are rarer than one in ten million.
        numbers = self._numbers.standard_exponential(row.shape[0])
        row.copy_(torch.from_numpy(np.maximum(numbers, _LEAST, out=numbers)))
