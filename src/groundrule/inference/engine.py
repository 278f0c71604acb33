"""The engine: requests join and leave a running batch at every step, and each is answered when it is done.

It answers from a snapshot of the policy. `publish` puts a new one in its place: requests under way
finish with the weights that they began with, later ones get the new weights and an empty cache.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch

from groundrule._util.seed import derive
from groundrule.errors import ModelError, QueueFullError
from groundrule.inference.jobs import EngineCounts, Entry, Job, by_slot
from groundrule.inference.lockstep import Lockstep
from groundrule.models.decoder import CACHE_BYTES, Answering, Decoder
from groundrule.models.load import LanguageModel
from groundrule.models.sampling import Sample
from groundrule.models.snapshot import snapshot

_CLOSED = "the engine is closed; register the model with a backend again"


@dataclass(eq=False)
class _Lane:
    """One version of the policy, and what it is answering."""

    version: int
    decoder: Decoder
    jobs: dict[Answering, Entry] = field(default_factory=dict)


class Engine:
    """Decodes in a thread of its own; every method may be called from any thread."""

    def __init__(
        self,
        model: LanguageModel,
        *,
        max_rows: int = 64,
        seed: int = 0,
        max_waiting: int = 1024,
        cache_bytes: int = CACHE_BYTES,
        version: int = 0,
    ) -> None:
        self.model = model
        self.max_rows = max_rows
        self.seed = seed
        self.max_waiting = max_waiting
        """Most answers that may wait for a place; more are refused."""
        self.cache_bytes = cache_bytes
        self.counts = EngineCounts()
        self.on_step: Callable[[int], None] | None = None
        """Hears after every step how many rows go on."""
        self._ready = threading.Condition()
        self._waiting: deque[Entry] = deque()
        self._queue: deque[Entry] = deque()
        """What waits only for a place; in lockstep, what is left of a round."""
        self._lockstep: Lockstep | None = None
        self._unseeded = 0
        self._closed = False
        self._current = self._lane(version)
        self._lanes = [self._current]
        self._thread = threading.Thread(target=self._work, name="groundrule-engine", daemon=True)
        self._thread.start()

    @property
    def version(self) -> int:
        """Of the policy that answers new requests."""
        return self._current.version

    def publish(self, version: int) -> None:
        """Answer new requests with the adapter as it is now."""
        lane = self._lane(version)
        with self._ready:
            self._current = lane
            self._lanes.append(lane)
            self._ready.notify()

    def submit(self, job: Job) -> Future[list[Sample]]:
        """Queue a job. Raises `QueueFullError` when too many answers wait already."""
        with self._ready:
            if self._closed:
                raise ModelError(_CLOSED)
            waiting = len(self._waiting) + len(self._queue)
            if waiting + len(job.requests) > self.max_waiting:
                raise QueueFullError(
                    f"{waiting} answers wait for this model and at most {self.max_waiting} may; ask again later"
                )
            self._waiting.extend((job, index) for index in range(len(job.requests)))
            self._ready.notify()
        return job.future

    def load(self) -> tuple[int, int]:
        """How many answers are being worked on, and how many wait."""
        with self._ready:
            return sum(len(lane.jobs) for lane in self._lanes), len(self._waiting) + len(self._queue)

    def seeds_for(self, slot: int | None, count: int) -> list[int]:
        """Seeds for the answers of a request that brought none.

        In lockstep they are fixed by version, slot and which request of the slot this is; otherwise fresh.
        """
        with self._ready:
            if slot is not None:
                turn = self._lockstep.next_turn(slot) if self._lockstep is not None else 0
                return [derive(self.seed, self.version, slot, turn, choice) for choice in range(count)]
            self._unseeded += 1
            return [derive(self.seed, "request", self._unseeded, choice) for choice in range(count)]

    @contextmanager
    def lockstep(self, slots: int) -> Iterator[Callable[[int], None]]:
        """Inside, answers begin when all slots that are still open wait. Yields a function that closes a slot.

        So the same run decodes the same batches whatever the timing. It begins with an empty cache:
        what was asked before must not show in the last bits.
        """
        with self._ready:
            if self._lockstep is not None:
                raise ModelError("a lockstep gather is already running on this model; let it finish first")
            self._lockstep = Lockstep(slots)
        try:
            yield self._close_slot
        finally:
            with self._ready:
                self._lockstep = None
                self._ready.notify()

    def close(self) -> None:
        """Stop after the running step; every job that is not answered gets a `ModelError`."""
        with self._ready:
            self._closed = True
            self._ready.notify()
        self._thread.join()

    def _lane(self, version: int) -> _Lane:
        with self.model.lock:
            copy = snapshot(self.model)
        return _Lane(version, Decoder(copy, max_rows=self.max_rows, cache_bytes=self.cache_bytes))

    def _close_slot(self, slot: int) -> None:
        with self._ready:
            if self._lockstep is not None:
                self._lockstep.close(slot)
            self._ready.notify()

    def _work(self) -> None:
        with torch.inference_mode():
            while True:
                with self._ready:
                    self._ready.wait_for(lambda: self._closed or self._let_in() or self._busy())
                    if self._closed:
                        break
                    self._admit()
                    lanes = [lane for lane in self._lanes if lane.jobs]
                for lane in lanes:
                    self._turn(lane)
        self._refuse_all()

    def _busy(self) -> bool:
        return any(lane.jobs for lane in self._lanes)

    def _let_in(self) -> bool:
        """Queue what may begin: everything, or in lockstep a whole round once the last one is over."""
        if self._lockstep is None:
            self._queue.extend(self._waiting)
            self._waiting.clear()
        elif (
            not self._queue and not self._busy() and self._lockstep.complete(job for job, _ in self._waiting)
        ):
            if self._lockstep.rounds == 0:
                self._current.decoder.cache.clear()
            self._lockstep.rounds += 1
            self._queue.extend(sorted(self._waiting, key=by_slot))
            self._waiting.clear()
        return bool(self._queue)

    def _admit(self) -> None:
        """Give places to what is queued. Call with the lock held."""
        self._lanes = [lane for lane in self._lanes if lane.jobs or lane is self._current]
        lane = self._current
        while self._queue and lane.decoder.free > 0:
            job, index = self._queue.popleft()
            if job.given_up:
                self._drop(job)
                continue
            if not job.answers:
                job.version = lane.version
                self.counts.requests += 1
            try:
                answering = Answering(job.requests[index])
            except Exception as error:  # A grammar that cannot begin, say: the others must not wait for it.
                job.refuse(error)
                continue
            job.answers.append(answering)
            lane.jobs[answering] = (job, index)
            lane.decoder.add(answering)
            self.counts.prompt_tokens += len(answering.request.prompt_ids)

    def _turn(self, lane: _Lane) -> None:
        for answering, (job, _) in lane.jobs.items():
            answering.cancelled = job.given_up
        before = lane.decoder.cached_tokens
        try:
            stepped = lane.decoder.turn()
        except Exception as error:
            self._fail(lane, error)
            return
        self.counts.steps += 1
        self.counts.cached_tokens += lane.decoder.cached_tokens - before
        self.counts.sampled_tokens += len(stepped)
        for answering in stepped:
            job, index = lane.jobs[answering]
            job.tell(index, answering.sample)
        self._hand_out(lane)
        if self.on_step is not None:
            self.on_step(lane.decoder.running)

    def _hand_out(self, lane: _Lane) -> None:
        """Let go of what is done or given up, and answer the jobs that are complete."""
        over = [a for a in lane.jobs if a.sample.done or a.cancelled]
        with self._ready:
            entries = [lane.jobs.pop(a) for a in over]
        for job in dict.fromkeys(job for job, _ in entries):
            if job.given_up:
                self._drop(job)
            elif job.complete:
                job.answer()

    def _fail(self, lane: _Lane, error: Exception) -> None:
        """Everything that this lane works on gets the error; it starts again with an empty batch."""
        with self._ready:
            failed = dict.fromkeys(job for job, _ in lane.jobs.values())
            lane.jobs = {}
            lane.decoder = Decoder(lane.decoder.model, max_rows=self.max_rows, cache_bytes=self.cache_bytes)
            self._queue = deque(entry for entry in self._queue if entry[0] not in failed)
        for job in failed:
            job.refuse(error)

    def _drop(self, job: Job) -> None:
        if not job.dropped:
            job.dropped = True
            self.counts.cancelled += 1

    def _refuse_all(self) -> None:
        with self._ready:
            entries = [*self._waiting, *self._queue, *(e for lane in self._lanes for e in lane.jobs.values())]
            for entries_held in (self._waiting, self._queue):
                entries_held.clear()
            for lane in self._lanes:
                lane.jobs.clear()
        for job in dict.fromkeys(job for job, _ in entries):
            job.refuse(ModelError(_CLOSED))
