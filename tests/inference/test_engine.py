"""The engine: who joins when, in lockstep in an order that does not depend on who came first."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest
import torch

from groundrule.errors import ModelError, QueueFullError
from groundrule.inference.engine import Engine
from groundrule.inference.jobs import Job
from groundrule.models.decoder import Answering, Decoder
from groundrule.models.lora import LoraSettings, adapter_parameters, add_adapter
from groundrule.models.sampling import Sample, SamplingRequest
from tiny import tiny_model

Asked = list[list[int]]


@pytest.fixture
def engine() -> Iterator[Engine]:
    made = Engine(tiny_model())
    yield made
    made.close()


@pytest.fixture
def endless() -> Iterator[Engine]:
    """No token ends an answer."""
    model = tiny_model(tied=False)
    model.eos_ids = frozenset()
    made = Engine(model)
    yield made
    made.close()


@pytest.fixture
def batches(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What began together: per turn the marks (last prompt tokens) of the requests that were new in it."""
    seen: Asked = []
    new: list[int] = []
    add, turn = Decoder.add, Decoder.turn

    def watched_add(decoder: Decoder, answering: Answering) -> None:
        new.append(answering.request.prompt_ids[-1])
        add(decoder, answering)

    def watched_turn(decoder: Decoder) -> list[Answering]:
        if new:
            seen.append(list(new))
            new.clear()
        return turn(decoder)

    monkeypatch.setattr(Decoder, "add", watched_add)
    monkeypatch.setattr(Decoder, "turn", watched_turn)
    return seen


def job(
    mark: int, slot: int | None = None, *, seed: int = 0, count: int = 1, tokens: int = 4, **more: Any
) -> Job:
    request = SamplingRequest((1, 40, mark), max_tokens=tokens, temperature=1.0, seed=seed)
    return Job([request] * count, slot, **more)


def answers(*futures: Future[list[Sample]]) -> list[list[Sample]]:
    return [future.result(timeout=20) for future in futures]


def test_a_job_gets_one_sample_for_each_of_its_requests(engine: Engine) -> None:
    [samples] = answers(engine.submit(job(50, count=3)))

    assert len(samples) == 3


def test_a_job_that_comes_later_joins_the_running_batch(endless: Engine) -> None:
    began = threading.Event()
    long = endless.submit(job(50, tokens=400, on_progress=lambda *_: began.set()))
    assert began.wait(20)
    answers(endless.submit(job(51)))

    assert not long.done()


def test_more_answers_than_places_wait_for_a_place() -> None:
    engine = Engine(tiny_model(), max_rows=2)
    [samples] = answers(engine.submit(job(50, count=5)))
    engine.close()

    assert len(samples) == 5


def test_too_many_waiting_answers_are_refused() -> None:
    engine = Engine(tiny_model(), max_waiting=2)
    with pytest.raises(QueueFullError, match="at most 2 may"):
        engine.submit(job(50, count=3))
    engine.close()


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


def test_an_answer_of_a_round_is_handed_over_before_the_longest_is_done(endless: Engine) -> None:
    with endless.lockstep(2):
        long = endless.submit(job(50, 0, tokens=400))
        answers(endless.submit(job(51, 1)))

        assert not long.done()


def test_a_second_lockstep_on_the_same_model_is_refused(engine: Engine) -> None:
    with engine.lockstep(1), pytest.raises(ModelError, match="already running"), engine.lockstep(1):
        pass


def test_a_job_cancelled_while_it_waits_is_never_decoded(engine: Engine, batches: Asked) -> None:
    with engine.lockstep(2):
        waiting, second = job(50, 0), job(51, 1)
        engine.submit(waiting)
        waiting.cancel()
        answers(engine.submit(second))

    assert batches == [[51]]


def test_a_job_cancelled_while_it_runs_frees_its_place(endless: Engine) -> None:
    endless._current.decoder.max_rows = 1
    began = threading.Event()
    running = job(50, tokens=10_000, on_progress=lambda *_: began.set())
    endless.submit(running)
    assert began.wait(20)
    running.cancel()
    answers(endless.submit(job(51)))

    assert endless.counts.cancelled == 1
    assert endless.load() == (0, 0)


def test_progress_is_told_token_by_token_and_ends_with_the_whole_answer(engine: Engine) -> None:
    heard: list[tuple[int, int, bool]] = []
    [[sample]] = answers(
        engine.submit(job(50, on_progress=lambda i, s: heard.append((i, len(s.token_ids), s.done))))
    )

    count = len(sample.token_ids)
    assert heard == [(0, n, n == count) for n in range(1, count + 1)]


def test_an_error_reaches_every_job_of_the_batch_and_the_engine_lives_on(engine: Engine) -> None:
    broken = engine.submit(job(10_000))

    with pytest.raises(IndexError):
        broken.result(timeout=20)
    assert len(answers(engine.submit(job(50)))[0]) == 1


def test_a_listener_that_fails_costs_its_own_job_alone(endless: Engine) -> None:
    def fails(index: int, sample: Sample) -> None:
        raise ZeroDivisionError

    broken, whole = job(50, tokens=200, on_progress=fails), job(51)
    endless.submit(broken)
    answers(endless.submit(whole))

    with pytest.raises(ZeroDivisionError):
        broken.future.result(timeout=20)
    assert endless.load() == (0, 0)


def test_a_constraint_that_cannot_begin_costs_its_own_job_alone(engine: Engine) -> None:
    def fails() -> Any:
        raise ZeroDivisionError

    broken = Job([SamplingRequest((1, 40, 50), max_tokens=4, constraint=fails)] * 2)
    engine.submit(broken)
    answers(engine.submit(job(51)))

    with pytest.raises(ZeroDivisionError):
        broken.future.result(timeout=20)


def logprobs_of(engine: Engine) -> list[float]:
    request = SamplingRequest((1, 40, 50), max_tokens=6, temperature=0.0)
    [[sample]] = answers(engine.submit(Job([request])))
    return sample.logprobs


def test_after_publishing_answers_come_from_the_new_weights_and_from_no_old_keys() -> None:
    model = tiny_model()
    add_adapter(model, LoraSettings(rank=2, alpha=4), seed=0)
    engine = Engine(model)
    before = logprobs_of(engine)
    with torch.no_grad():
        for parameter in adapter_parameters(model).values():
            parameter.fill_(0.2)
    engine.publish(1)
    after, fresh = logprobs_of(engine), Engine(model)

    assert after == logprobs_of(fresh) != before
    for each in (engine, fresh):
        each.close()


def test_an_answer_under_way_is_finished_by_the_weights_that_it_began_with(endless: Engine) -> None:
    wanted = answers(endless.submit(job(50, tokens=120)))[0][0].logprobs
    began = threading.Event()
    running = job(50, tokens=120, on_progress=lambda *_: began.set())
    endless.submit(running)
    assert began.wait(20)
    with torch.no_grad():
        endless.model.head.weight.mul_(0.5)
    endless.publish(1)

    [[sample]] = answers(running.future)
    assert sample.logprobs == pytest.approx(wanted, abs=1e-5)
    assert running.version == 0


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
    engine.publish(1)
    with engine.lockstep(1):
        assert engine.seeds_for(0, 1) != before


def test_requests_outside_lockstep_never_share_a_seed(engine: Engine) -> None:
    assert not set(engine.seeds_for(None, 2)) & set(engine.seeds_for(None, 2))


def test_what_was_done_is_counted(engine: Engine) -> None:
    [samples] = answers(engine.submit(job(50, count=2)))

    assert (engine.counts.requests, engine.counts.prompt_tokens, engine.counts.cached_tokens) == (1, 6, 0)
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
