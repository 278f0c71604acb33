"""The engine: one batch for all that wait, in an order that does not depend on who came first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future

import pytest

from groundrule.errors import ModelError
from groundrule.inference import engine as engine_module
from groundrule.inference.engine import Engine, Job
from groundrule.models.sampling import Sample, SamplingRequest
from tiny import tiny_model

Asked = list[list[int]]


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine(tiny_model())
    yield made
    made.close()


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What was decoded together: per batch the marks (last prompt tokens) of its requests."""
    seen: Asked = []
    generate = engine_module.generate

    def watched(model: object, requests: list[SamplingRequest], **more: object) -> list[Sample]:
        seen.append([r.prompt_ids[-1] for r in requests])
        return generate(model, requests, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(engine_module, "generate", watched)
    return seen


def job(mark: int, slot: int | None = None, *, seed: int = 0, count: int = 1) -> Job:
    request = SamplingRequest((1, 40, mark), max_tokens=4, temperature=1.0, seed=seed)
    return Job([request] * count, slot)


def answers(*futures: Future[list[Sample]]) -> list[list[Sample]]:
    return [future.result(timeout=20) for future in futures]


def test_a_job_gets_one_sample_for_each_of_its_requests(engine: Engine) -> None:
    [samples] = answers(engine.submit(job(50, count=3)))

    assert len(samples) == 3


def test_jobs_that_wait_while_the_model_is_busy_are_decoded_together(engine: Engine, batches: Asked) -> None:
    with engine.model.lock:
        first = engine.submit(job(50))
        while engine._waiting:
            threading.Event().wait(0.001)
        rest = [engine.submit(job(mark)) for mark in (51, 52)]

    answers(first, *rest)
    assert batches == [[50], [51, 52]]


@pytest.mark.parametrize("arrival", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_lockstep_decodes_slots_in_their_order_whoever_came_first(
    engine: Engine, batches: Asked, arrival: tuple[int, ...]
) -> None:
    with engine.lockstep(3):
        answers(*[engine.submit(job(50 + slot, slot)) for slot in arrival])

    assert batches == [[50, 51, 52]]


def test_lockstep_waits_for_every_open_slot(engine: Engine, batches: Asked) -> None:
    with engine.lockstep(2):
        first = engine.submit(job(50, 0))
        with pytest.raises(TimeoutError):
            first.result(timeout=0.05)
        answers(first, engine.submit(job(51, 1)))

    assert batches == [[50, 51]]


def test_a_slot_that_closes_lets_the_others_go(engine: Engine, batches: Asked) -> None:
    with engine.lockstep(2) as close_slot:
        first = engine.submit(job(50, 0))
        close_slot(1)
        answers(first)

    assert batches == [[50]]


def test_the_end_of_lockstep_lets_the_rest_go(engine: Engine) -> None:
    with engine.lockstep(2):
        first = engine.submit(job(50, 0))

    assert len(answers(first)[0]) == 1


def test_a_request_from_outside_the_lockstep_is_answered_with_the_next_batch(
    engine: Engine, batches: Asked
) -> None:
    with engine.lockstep(1):
        answers(engine.submit(job(60)), engine.submit(job(50, 0)))

    assert batches == [[60, 50]]


def test_a_second_lockstep_on_the_same_model_is_refused(engine: Engine) -> None:
    with engine.lockstep(1), pytest.raises(ModelError, match="already running"), engine.lockstep(1):
        pass


def test_a_job_cancelled_while_it_waits_is_never_decoded(engine: Engine, batches: Asked) -> None:
    with engine.model.lock:
        first = engine.submit(job(50))
        while engine._waiting:
            threading.Event().wait(0.001)
        second, third = engine.submit(job(51)), engine.submit(job(52))
        assert second.cancel()

    answers(first, third)
    assert batches == [[50], [52]]


def test_an_error_reaches_all_jobs_of_its_batch_and_the_engine_lives_on(engine: Engine) -> None:
    broken = engine.submit(job(10_000))

    with pytest.raises(IndexError):
        broken.result(timeout=20)
    assert len(answers(engine.submit(job(50)))[0]) == 1


def test_seeds_in_lockstep_are_fixed_by_slot_request_and_choice(engine: Engine) -> None:
    def seeds() -> list[int]:
        with engine.lockstep(2):
            return [seed for slot in (0, 1, 0) for seed in engine.seeds_for(slot, 2)]

    first = seeds()

    assert seeds() == first
    assert len(set(first)) == 6


def test_another_version_of_the_policy_has_other_seeds(engine: Engine) -> None:
    with engine.lockstep(1):
        before = engine.seeds_for(0, 1)
    engine.version = 1
    with engine.lockstep(1):
        assert engine.seeds_for(0, 1) != before


def test_requests_outside_lockstep_never_share_a_seed(engine: Engine) -> None:
    assert not set(engine.seeds_for(None, 2)) & set(engine.seeds_for(None, 2))


def test_what_was_done_is_counted(engine: Engine) -> None:
    [samples] = answers(engine.submit(job(50, count=2)))

    assert (engine.counts.requests, engine.counts.batches, engine.counts.prompt_tokens) == (1, 1, 6)
    assert engine.counts.sampled_tokens == sum(len(s.token_ids) for s in samples)


def test_jobs_that_wait_when_the_engine_closes_are_told() -> None:
    engine = Engine(tiny_model())
    with engine.lockstep(2):
        waiting = engine.submit(job(50, 0))
        engine.close()

    with pytest.raises(ModelError, match="the engine is closed"):
        waiting.result(timeout=5)


def test_a_closed_engine_takes_no_jobs() -> None:
    engine = Engine(tiny_model())
    engine.close()

    with pytest.raises(ModelError, match="the engine is closed"):
        engine.submit(job(50))
