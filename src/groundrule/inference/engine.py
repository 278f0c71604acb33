"""The engine: collects requests, decodes them together, and answers each one.

Two ways of deciding when a batch starts. Normally: as soon as the model is free, with whatever
waits. In lockstep (training runs): when every open slot waits, in slot order, so that the same run
decodes the same batches whatever the timing.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field

from groundrule._util.seed import derive
from groundrule.errors import ModelError
from groundrule.models.generate import generate
from groundrule.models.load import LanguageModel
from groundrule.models.lora import merged
from groundrule.models.sampling import Sample, SamplingRequest

_CLOSED = "the engine is closed; register the model with a backend again"


@dataclass
class Job:
    """All answers wanted by one HTTP request."""

    requests: list[SamplingRequest]
    slot: int | None = None
    future: Future[list[Sample]] = field(default_factory=Future)
    on_progress: Callable[[int, Sample], None] | None = None
    """Hears, on the engine's thread, which request got a token and its sample so far (`sample.done` at the last)."""
    cancelled: bool = False

    def cancel(self) -> None:
        """Free this job's places at the next step; its future ends as cancelled."""
        self.cancelled = True
        self.future.cancel()


@dataclass
class EngineCounts:
    """What the engine has done so far."""

    requests: int = 0
    batches: int = 0
    prompt_tokens: int = 0
    sampled_tokens: int = 0


class Engine:
    """Decodes in a thread of its own; `submit` may be called from any thread."""

    def __init__(self, model: LanguageModel, *, max_rows: int = 64, seed: int = 0) -> None:
        self.model = model
        self.max_rows = max_rows
        self.seed = seed
        self.version = 0
        """Of the policy that answers now; the backend raises it with every update."""
        self.counts = EngineCounts()
        self.on_step: Callable[[int], None] | None = None
        self._ready = threading.Condition()
        self._waiting: list[Job] = []
        self._open_slots: set[int] | None = None
        self._turns: dict[int, int] = {}
        self._unseeded = 0
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="groundrule-engine", daemon=True)
        self._thread.start()

    def submit(self, job: Job) -> Future[list[Sample]]:
        """Queue a job. Cancelling its future before the batch starts frees its place."""
        with self._ready:
            if self._closed:
                raise ModelError(_CLOSED)
            self._waiting.append(job)
            self._ready.notify()
        return job.future

    def seeds_for(self, slot: int | None, count: int) -> list[int]:
        """Seeds for the answers of a request that brought none.

        In lockstep they are fixed by version, slot and which request of the slot this is; otherwise fresh.
        """
        with self._ready:
            if slot is None:
                self._unseeded += 1
                return [derive(self.seed, "request", self._unseeded, choice) for choice in range(count)]
            turn = self._turns.get(slot, 0)
            self._turns[slot] = turn + 1
            return [derive(self.seed, self.version, slot, turn, choice) for choice in range(count)]

    @contextmanager
    def lockstep(self, slots: int) -> Iterator[Callable[[int], None]]:
        """Inside, batches start when all slots that are still open wait. Yields a function that closes a slot."""
        with self._ready:
            if self._open_slots is not None:
                raise ModelError("a lockstep gather is already running on this model; let it finish first")
            self._open_slots, self._turns = set(range(slots)), {}
        try:
            yield self._close_slot
        finally:
            with self._ready:
                self._open_slots = None
                self._ready.notify()

    def close(self) -> None:
        """Stop after the running batch; waiting jobs get a `ModelError`."""
        with self._ready:
            self._closed = True
            for job in self._waiting:
                if job.future.set_running_or_notify_cancel():
                    job.future.set_exception(ModelError(_CLOSED))
            self._waiting.clear()
            self._ready.notify()
        self._thread.join()

    def _close_slot(self, slot: int) -> None:
        with self._ready:
            if self._open_slots is not None:
                self._open_slots.discard(slot)
            self._ready.notify()

    def _work(self) -> None:
        while True:
            with self._ready:
                self._ready.wait_for(lambda: self._closed or self._complete())
                if self._closed:
                    return
                batch, self._waiting = self._waiting, []
            batch.sort(key=lambda job: -1 if job.slot is None else job.slot)
            self._answer([job for job in batch if job.future.set_running_or_notify_cancel()])

    def _complete(self) -> bool:
        if not self._waiting or self._open_slots is None:
            return bool(self._waiting)
        waiting = {job.slot for job in self._waiting}
        unknown = sum(job.slot is None for job in self._waiting)
        # A request that names no slot stands for one that is still missing, or both would wait forever.
        return len(self._open_slots - waiting) <= unknown

    def _answer(self, jobs: list[Job]) -> None:
        if not jobs:
            return
        requests = [request for job in jobs for request in job.requests]
        try:
            with self.model.lock, merged(self.model):
                samples = generate(self.model, requests, max_rows=self.max_rows, on_step=self.on_step)
        except Exception as error:
            for job in jobs:
                job.future.set_exception(error)
            return
        self.counts.requests += len(jobs)
        self.counts.batches += 1
        self.counts.prompt_tokens += sum(len(r.prompt_ids) for r in requests)
        self.counts.sampled_tokens += sum(len(s.token_ids) for s in samples)
        start = 0
        for job in jobs:
            job.future.set_result(samples[start : start + len(job.requests)])
            start += len(job.requests)
