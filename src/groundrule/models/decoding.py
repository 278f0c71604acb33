"""The running batch: rows that get one token a step, and that come and go between steps.

All rows write the keys and values of a step into the same column of one buffer; a row that came
later begins at a later column, and a mask hides what was there before it. What rows of one prompt
have read is kept once for all of them (see `shared_prompts.py`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

from groundrule.models.key_values import KeyValues
from groundrule.models.load import LanguageModel
from groundrule.models.sampling import Row, draw
from groundrule.models.shared_prompts import SharedPrompts, arrange

ROOM = 128
"""Columns added at once where a buffer is full."""
MOST_IDLE = 4
"""How many times as large as needed memory may be that is used again."""


@dataclass(eq=False)
class Place:
    """A row of the batch, and where its past is."""

    row: Row
    prompt: KeyValues
    start: int = 0
    """The column of its first own token."""


@dataclass
class RunningBatch:
    """Rows that are decoded together by one model."""

    model: LanguageModel
    places: list[Place] = field(default_factory=list)
    column: int = 0
    """Where the next step writes."""
    _keys: list[torch.Tensor] = field(default_factory=list)
    _values: list[torch.Tensor] = field(default_factory=list)
    _shared: list[SharedPrompts] = field(default_factory=list)
    _memory: torch.Tensor | None = None
    _spare: torch.Tensor | None = None
    """What keys and values are in, and what they were in before the last move, to be used for the next."""
    _mask: torch.Tensor | None = None

    def __len__(self) -> int:
        return len(self.places)

    @property
    def rows(self) -> list[Row]:
        return [place.row for place in self.places]

    def recompose(self, new: Sequence[Place] = ()) -> None:
        """Let finished rows go and new ones in, whose first token has been drawn."""
        old = {id(place): i for i, place in enumerate(self.places)}
        kept = [place for place in self.places if not place.row.sample.done]
        for place in new:
            place.start = self.column
        self.places, self._shared = arrange([*kept, *new], lambda place: place.prompt)
        sources = [old.get(id(place), -1) for place in self.places]
        self._move(sources, shift=min((p.start for p in self.places), default=self.column))

    def step(self) -> None:
        """One more token for every row."""
        if self._keys and self.column == self._keys[0].shape[2]:
            self._move(range(len(self.places)), shift=min(p.start for p in self.places))
        samples = [place.row.sample for place in self.places]
        positions = [p.prompt.tokens + len(p.row.sample.token_ids) - 1 for p in self.places]
        device = self.model.device
        self._mask = self._own_mask(device)
        hidden = self.model.core(
            input_ids=torch.tensor([[s.token_ids[-1]] for s in samples], device=device),
            position_ids=torch.tensor(positions, device=device)[:, None],
            use_cache=False, prefix_state=self,
        ).last_hidden_state[:, -1]  # fmt: skip
        self.column += 1
        draw(self.model.head(hidden).float(), self.rows)

    def own(self, place: Place) -> KeyValues:
        """What a row computed of its own tokens: all but the last one, which nothing was drawn after."""
        row, stop = self.places.index(place), place.start + len(place.row.sample.token_ids) - 1
        return KeyValues([k[row] for k in self._keys], [v[row] for v in self._values]).cut(place.start, stop)

    def attend(
        self, layer: int, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float
    ) -> torch.Tensor:
        self._keys[layer][:, :, self.column] = k[:, :, 0]
        self._values[layer][:, :, self.column] = v[:, :, 0]
        keys, values = (t[layer][:, :, : self.column + 1] for t in (self._keys, self._values))
        outputs, start = [], 0
        for shared in self._shared:
            part = slice(start, start + shared.rows)
            mask = None if self._mask is None else self._mask[part]
            outputs.append(shared.attend(layer, q[part], keys[part], values[part], mask, scale))
            start += shared.rows
        return outputs[0] if len(outputs) == 1 else torch.cat(outputs)

    def _own_mask(self, device: torch.device) -> torch.Tensor | None:
        """(rows, 1, columns): minus infinity before a row's start; None where all begin at the first column."""
        starts = [place.start for place in self.places]
        if not any(starts):
            return None
        columns = torch.arange(self.column + 1, device=device)
        before = columns[None] < torch.tensor(starts, device=device)[:, None]
        mask = torch.zeros(before.shape, device=device, dtype=self._dtype)
        return mask.masked_fill_(before, float("-inf"))[:, None]

    @property
    def _dtype(self) -> torch.dtype:
        return self.places[0].prompt.keys[0].dtype

    def _move(self, sources: Sequence[int], *, shift: int) -> None:
        """Rows from these places (-1: a new one), columns moved down by `shift`, with room for more."""
        width = self.column - shift
        for place in self.places:
            place.start -= shift
        if not sources:
            self._keys, self._values, self._memory, self._spare = [], [], None, None
        else:
            old, into = [*self._keys, *self._values], self._spare
            made, self._spare = (
                _buffers(self.places[0].prompt, len(sources), width + ROOM, into),
                self._memory,
            )
            self._memory = made.memory
            if width:
                # A new row's columns are masked, so it may copy anything that is finite.
                index = torch.tensor([max(0, s) for s in sources], device=self.model.device)
                for new, before in zip(made.pieces, old, strict=True):
                    new[:, :, :width] = before[:, :, shift : self.column].index_select(0, index)
            half = len(made.pieces) // 2
            self._keys, self._values = made.pieces[:half], made.pieces[half:]
        self.column = width


class _Buffers(NamedTuple):
    memory: torch.Tensor
    pieces: list[torch.Tensor]
    """For every layer's keys and then values: (rows, kv_heads, columns, dim)."""


def _buffers(like: KeyValues, rows: int, columns: int, memory: torch.Tensor | None) -> _Buffers:
    """Room for keys and values in one piece of memory: in `memory`, where that is large enough and not far too large.

    It is not cleared: a column is written before it is read. Rows come and go at most steps, and fresh memory would
    cost more each time than the step itself.
    """
    shapes = [(rows, t.shape[0], columns, t.shape[2]) for t in (*like.keys, *like.values)]
    sizes = [math.prod(shape) for shape in shapes]
    needed = sum(sizes)
    if memory is None or not needed <= memory.numel() <= MOST_IDLE * needed:
        memory = like.keys[0].new_empty(needed)
    pieces = torch.split(memory[:needed], sizes)
    return _Buffers(memory, [piece.view(shape) for piece, shape in zip(pieces, shapes, strict=True)])
