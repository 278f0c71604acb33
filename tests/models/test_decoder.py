"""Continuous batching: whoever comes and goes, every answer is what it would be alone."""

from __future__ import annotations

import itertools
import random

import pytest
import torch

from groundrule.models.decoder import Answering, Decoder
from groundrule.models.generate import generate
from groundrule.models.load import LanguageModel
from groundrule.models.prefix_cache import PrefixCache
from groundrule.models.sampling import Sample, SamplingRequest
from tiny import full_logprobs, tiny_model, tiny_network

PROMPT = tuple(range(20, 40))


def endless() -> LanguageModel:
    model = tiny_model()
    model.eos_ids = frozenset()
    return model


def ask(prompt: tuple[int, ...] = PROMPT, **more: object) -> SamplingRequest:
    return SamplingRequest(prompt, **{"max_tokens": 6, "temperature": 1.0, **more})  # type: ignore[arg-type]


def finish(decoder: Decoder) -> None:
    with torch.inference_mode():
        while decoder.busy:
            decoder.turn()


def mixed_requests() -> list[SamplingRequest]:
    """Prompts that share beginnings of every length, and answers of every length."""
    rng = random.Random(5)
    base = [rng.randrange(4, 260) for _ in range(60)]
    requests = []
    for seed in range(24):
        shared, own = rng.choice([0, 1, 7, 30, 60]), rng.randrange(1, 9)
        prompt = (*base[:shared], *(rng.randrange(4, 260) for _ in range(own)))
        requests.append(ask(prompt, seed=seed, max_tokens=rng.randrange(1, 40)))
    return requests + requests[:3]


def answers_joining_at_random(model: LanguageModel, requests: list[SamplingRequest]) -> list[Sample]:
    rng, decoder = random.Random(1), Decoder(model, max_rows=7, read_at_once=16)
    answering = [Answering(request) for request in requests]
    waiting = list(answering)
    with torch.inference_mode():
        while waiting or decoder.busy:
            for _ in range(min(rng.randrange(3), decoder.free, len(waiting))):
                decoder.add(waiting.pop(0))
            decoder.turn()
    return [a.sample for a in answering]


def test_requests_that_join_at_any_step_get_the_text_that_they_get_alone() -> None:
    model, requests = endless(), mixed_requests()

    together = answers_joining_at_random(model, requests)

    assert [s.token_ids for s in together] == [generate(model, [r])[0].token_ids for r in requests]


def test_their_log_probabilities_are_those_of_a_plain_pass() -> None:
    model, requests = endless(), mixed_requests()

    together = answers_joining_at_random(model, requests)

    with torch.inference_mode():
        for request, sample in zip(requests, together, strict=True):
            wanted = full_logprobs(tiny_network(), request.prompt_ids, sample.token_ids)
            assert sample.logprobs == pytest.approx(wanted.tolist(), abs=1e-4)


def test_a_prompt_of_several_requests_is_read_once() -> None:
    decoder = Decoder(endless())
    for seed in range(3):
        decoder.add(Answering(ask(seed=seed)))
    finish(decoder)

    assert decoder.read_tokens == 20


def test_a_prompt_that_was_read_before_is_not_read_again() -> None:
    decoder = Decoder(endless())
    for _ in range(2):
        decoder.add(Answering(ask()))
        finish(decoder)

    assert (decoder.read_tokens, decoder.cached_tokens) == (20, 20)


def test_the_next_turn_of_a_conversation_reads_only_what_is_new() -> None:
    decoder = Decoder(endless())
    first = Answering(ask(max_tokens=5))
    decoder.add(first)
    finish(decoder)

    decoder.add(Answering(ask((*PROMPT, *first.sample.token_ids, 50, 51))))
    finish(decoder)

    assert decoder.read_tokens == 20 + 3  # The last token of an answer is never computed while it is sampled.


def test_a_long_prompt_is_read_in_pieces_while_others_get_tokens() -> None:
    decoder = Decoder(endless(), read_at_once=10)
    running, long = Answering(ask((5, 6), max_tokens=30)), Answering(ask(tuple(range(50, 95))))
    decoder.add(running)
    with torch.inference_mode():
        decoder.turn()
        decoder.add(long)
        while not long.sample.token_ids:
            decoder.turn()

    assert len(running.sample.token_ids) == 1 + 5


def test_what_one_decoder_has_read_another_need_not_read_with_its_cache() -> None:
    model, cache = endless(), PrefixCache(1 << 20)
    generate(model, [ask(PROMPT, max_tokens=4)], cache=cache)
    decoder, again = Decoder(model, cache=cache), Answering(ask((*PROMPT, 50, 51)))
    decoder.add(again)
    finish(decoder)

    assert decoder.read_tokens == 2


def test_all_prompts_are_read_before_the_next_step_where_nobody_waits_for_tokens() -> None:
    decoder = Decoder(endless(), read_at_once=1, reads_first=True)
    for first in range(40, 60):
        decoder.add(Answering(ask((5, first, *range(20)), max_tokens=9)))
    with torch.inference_mode():
        decoder.turn()

    assert decoder.running == 20


def test_a_cancelled_request_frees_its_place_at_the_next_turn() -> None:
    decoder = Decoder(endless(), max_rows=1)
    answering = Answering(ask(max_tokens=100))
    decoder.add(answering)
    with torch.inference_mode():
        decoder.turn()
        answering.cancelled = True
        decoder.turn()

    assert (decoder.free, decoder.busy, len(decoder.batch)) == (1, False, 0)


def test_a_request_cancelled_before_its_prompt_was_read_is_never_read() -> None:
    decoder = Decoder(endless())
    answering = Answering(ask())
    decoder.add(answering)
    answering.cancelled = True
    finish(decoder)

    assert decoder.read_tokens == 0


def test_the_buffer_grows_with_the_longest_answer() -> None:
    model = endless()

    [sample] = generate(model, [ask((5, 6), max_tokens=300)])

    with torch.inference_mode():
        wanted = full_logprobs(tiny_network(), (5, 6), sample.token_ids)
    assert sample.logprobs == pytest.approx(wanted.tolist(), abs=1e-4)


def test_text_grows_without_the_beginning_of_a_stop_string_and_is_never_taken_back() -> None:
    model = endless()
    [whole] = generate(model, [ask(seed=3, max_tokens=12)])
    decoder, answering = Decoder(model), Answering(ask(seed=3, max_tokens=12, stop=(whole.text[5:8],)))
    decoder.add(answering)
    seen = []
    with torch.inference_mode():
        while decoder.busy:
            decoder.turn()
            seen.append(answering.sample.text)

    assert answering.sample.text == whole.text[: whole.text.index(whole.text[5:8])]
    assert all(later.startswith(earlier) for earlier, later in itertools.pairwise(seen))


class OnlyEven:
    """A constraint that lets ids pass that are even, and writes down what came."""

    def __init__(self) -> None:
        self.taken: list[int] = []

    def allowed(self) -> torch.Tensor:
        return torch.arange(260) % 2 == 0

    def take(self, token: int) -> None:
        self.taken.append(token)


def test_a_constraint_decides_what_may_come_and_hears_what_came() -> None:
    made = OnlyEven()

    [sample] = generate(endless(), [ask(constraint=lambda: made)])

    assert all(token % 2 == 0 for token in sample.token_ids)
    assert made.taken == sample.token_ids


def test_a_bias_of_a_hundred_decides() -> None:
    [sample] = generate(endless(), [ask(logit_bias=((77, 100.0),))])

    assert sample.token_ids == [77] * 6


def test_the_likeliest_tokens_are_noted_most_likely_first() -> None:
    [sample] = generate(endless(), [ask(top_logprobs=3, max_tokens=1)])

    with torch.inference_mode():
        logits = tiny_network()(input_ids=torch.tensor([PROMPT])).logits[0, -1]
    best = torch.log_softmax(logits, -1).topk(3)
    [noted] = sample.top_logprobs
    assert [i for i, _ in noted] == best.indices.tolist()
    assert [p for _, p in noted] == pytest.approx(best.values.tolist(), abs=1e-4)
