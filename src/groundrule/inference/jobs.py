"""What is asked of an engine: jobs of one or more answers, and what has been done so far."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
from dataclasses import dataclass, field

from groundrule.models.decoder import Answering
from groundrule.models.sampling import Sample, SamplingRequest


@dataclass(eq=False)
class Job:
    """All answers wanted by one HTTP request."""

    requests: list[SamplingRequest]
    slot: int | None = None
    future: Future[list[Sample]] = field(default_factory=Future)
    on_progress: Callable[[int, Sample], None] | None = None
    """Hears, on the engine's thread, which request got a token and its sample so far (`sample.done` at the last)."""
    version: int = 0
    """Of the policy that answers, set when it begins to."""
    answers: list[Answering] = field(default_factory=list)
    dropped: bool = False
    """The engine has seen that it is given up."""

    def cancel(self) -> None:
        """Free this job's places at the next step; without effect once it is answered."""
        self.future.cancel()

    @property
    def complete(self) -> bool:
        """Whether all its answers are."""
        return len(self.answers) == len(self.requests) and all(a.sample.done for a in self.answers)

    def tell(self, index: int, sample: Sample) -> None:
        """Say that an answer has grown. A listener that fails costs its own job, not the engine."""
        if self.on_progress is None or self.given_up:
            return
        try:
            self.on_progress(index, sample)
        except Exception as error:
            self.refuse(error)

    def answer(self) -> None:
        """Hand the samples over."""
        with suppress(InvalidStateError):  # Cancelled this very moment.
            self.future.set_result([answering.sample for answering in self.answers])

    def refuse(self, error: Exception) -> None:
        """End it with an error."""
        with suppress(InvalidStateError):
            self.future.set_exception(error)

    @property
    def given_up(self) -> bool:
        """Nobody wants the answer any more."""
        return self.future.done()


@dataclass
class EngineCounts:
    """What the engine has done so far."""

    requests: int = 0
    cancelled: int = 0
    steps: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    """Prompt tokens that had been read before."""
    sampled_tokens: int = 0


Entry = tuple[Job, int]
"""A job, and which of its requests."""


def by_slot(entry: Entry) -> int:
    """Jobs of rollouts in the order of their slots, behind those that have none."""
    slot = entry[0].slot
    return -1 if slot is None else slot
