"""One model answering many requests: prompts are read in pieces between decoding steps.

Requests may be added and cancelled between any two turns. A turn reads at most `read_at_once` prompt
tokens and then gives every running row one token, so a long prompt does not keep others waiting.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from groundrule.models.answer_text import AnswerText
from groundrule.models.decoding import Place, RunningBatch
from groundrule.models.key_values import KeyValues
from groundrule.models.load import LanguageModel
from groundrule.models.prefix_cache import PrefixCache
from groundrule.models.reading import Reading
from groundrule.models.sampling import Row, Sample, SamplingRequest, draw, new_row

READ_AT_ONCE = 512
WHEN_IDLE = 8
"""So many times more is read in a turn in which nobody waits for a next token."""
CACHE_BYTES = 1 << 30


@dataclass(eq=False)
class Answering:
    """One request on its way to an answer."""

    request: SamplingRequest
    row: Row = field(init=False)
    text: AnswerText | None = None
    place: Place | None = None
    cancelled: bool = False

    def __post_init__(self) -> None:
        self.row = new_row(self.request)

    @property
    def sample(self) -> Sample:
        return self.row.sample


class Decoder:
    """Reads and decodes with one set of weights. One thread uses it, under `torch.inference_mode()`.

    With `reads_first` all prompts that wait are read before the next step: where nobody listens to single tokens, rows
    then join the batch at once and not one by one, which would copy it every time. `cache` is what was read before.
    """

    def __init__(
        self,
        model: LanguageModel,
        *,
        max_rows: int = 64,
        cache_bytes: int = CACHE_BYTES,
        read_at_once: int = READ_AT_ONCE,
        reads_first: bool = False,
        cache: PrefixCache | None = None,
    ) -> None:
        self.model = model
        self.max_rows = max_rows
        self.read_at_once = read_at_once
        self.reads_first = reads_first
        self.cache = PrefixCache(cache_bytes) if cache is None else cache
        self.cached_tokens = self.read_tokens = 0
        self.batch = RunningBatch(model)
        self._reading: dict[tuple[int, ...], list[Answering]] = {}
        self._under_way: Reading | None = None
        self._running: list[Answering] = []

    @property
    def running(self) -> int:
        """Rows that get tokens."""
        return len(self._running)

    @property
    def busy(self) -> bool:
        return bool(self._running or self._reading)

    @property
    def free(self) -> int:
        """How many more requests may be added."""
        return self.max_rows - len(self._running) - sum(map(len, self._reading.values()))

    def add(self, answering: Answering) -> None:
        """Take a request; its prompt is read once with those of others that have the same."""
        self._reading.setdefault(answering.request.prompt_ids, []).append(answering)

    def turn(self) -> list[Answering]:
        """Read and decode one step; returns those that got a token."""
        self._drop_cancelled()
        first = self._read(self.read_at_once * (1 if self._running else WHEN_IDLE))
        while self.reads_first and self._reading:
            first += self._read(self.read_at_once * WHEN_IDLE)
        stepped = list(self._running)
        if stepped:
            self._make_way()
            self.batch.step()
            self._settle(stepped)
        self._running = [a for a in (*stepped, *first) if not a.sample.done]
        if not self._running and len(self.batch):
            self.batch.recompose()  # Its memory is free.
        return [*first, *stepped]

    def _read(self, most: int) -> list[Answering]:
        """Read prompts as far as this turn allows; the first tokens of those that are read."""
        left: int = most
        first: list[Answering] = []
        while self._reading and left > 0:
            prompt = next(iter(self._reading))
            reading = self._under_way
            if reading is None or reading.ids != prompt:
                reading = self._under_way = Reading(prompt, self.cache)
                self.cached_tokens += reading.cached
            if not reading.done:
                read = reading.advance(self.model, left)
                left, self.read_tokens = left - read, self.read_tokens + read
            if reading.done:
                self._under_way = None
                first += self._begin(reading, self._reading.pop(prompt))
        return first

    def _begin(self, reading: Reading, answers: list[Answering]) -> list[Answering]:
        """Draw the first token of every answer to a prompt that has been read."""
        prompt = reading.prompt
        assert prompt is not None and reading.hidden is not None
        logits = self.model.head(reading.hidden[None]).float().expand(len(answers), -1)
        draw(logits, [a.row for a in answers])
        for answering in answers:
            answering.text = AnswerText(self.model.tokenizer, answering.request.stop)
            answering.place = Place(answering.row, prompt)
        self._settle(answers)
        return answers

    def _make_way(self) -> None:
        """Recompose the batch where rows came, or where an eighth of it is done."""
        inside = {id(place) for place in self.batch.places}
        new = [a.place for a in self._running if a.place is not None and id(a.place) not in inside]
        done = sum(place.row.sample.done for place in self.batch.places)
        if new or done * 8 >= len(self.batch):
            self.batch.recompose(new)

    def _settle(self, answers: list[Answering]) -> None:
        """Finish those that met an end token, a stop string or their limit; note the others' text."""
        for answering in answers:
            sample, text = answering.sample, answering.text
            if sample.done or text is None:
                continue
            ids = sample.token_ids
            if ids[-1] in self.model.eos_ids:
                sample.done, sample.finish_reason, sample.text = True, "stop", text.whole(ids[:-1])
            else:
                sample.text = text.add(ids[-1])
                if text.stopped:
                    sample.done, sample.finish_reason = True, "stop"
                elif len(ids) >= answering.request.max_tokens:
                    sample.done, sample.text = True, text.whole(ids)
            if sample.done:
                self._remember(answering)

    def _remember(self, answering: Answering) -> None:
        """Keep what the answer computed: the next turn of its conversation begins with it."""
        place, ids = answering.place, answering.sample.token_ids
        if place is None or len(ids) < 2 or place not in self.batch.places:
            return
        own: KeyValues = self.batch.own(place)
        self.cache.insert((*answering.request.prompt_ids, *ids[:-1]), own)

    def _drop_cancelled(self) -> None:
        for prompt, answers in list(self._reading.items()):
            kept = [a for a in answers if not a.cancelled]
            if kept:
                self._reading[prompt] = kept
            else:
                del self._reading[prompt]
        for answering in self._running:
            if answering.cancelled:
                answering.sample.done = True
        self._running = [a for a in self._running if not a.cancelled]
