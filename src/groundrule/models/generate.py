"""Sampling from start to end: many requests read, decoded together and answered.

Every row draws from its own random stream, so a request with a seed gives the same text whatever
else is in the batch (but for two tokens whose race ends within the last bits of floating point).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence

import torch

from groundrule.models.decoder import Answering, Decoder
from groundrule.models.load import LanguageModel
from groundrule.models.prefix_cache import PrefixCache
from groundrule.models.sampling import Sample, SamplingRequest


def generate(
    model: LanguageModel,
    requests: Sequence[SamplingRequest],
    *,
    max_rows: int = 64,
    cache: PrefixCache | None = None,
    on_step: Callable[[int], None] | None = None,
) -> list[Sample]:
    """Samples in request order. `on_step` hears after every step how many rows go on.

    `cache` keeps what was read from one call to the next, for as long as the weights are the same.
    """
    decoder = Decoder(model, max_rows=max_rows, reads_first=True, cache=cache)
    answers = [Answering(request) for request in requests]
    waiting = deque(answers)
    with torch.inference_mode():
        while waiting or decoder.busy:
            while waiting and decoder.free:
                decoder.add(waiting.popleft())
            decoder.turn()
            if on_step is not None:
                on_step(decoder.running)
    return [answer.sample for answer in answers]
