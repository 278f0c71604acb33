"""Sampling: the same text whatever else is in the batch, with the logprobs of the plain model."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from groundrule.models import decoding
from groundrule.models.generate import generate
from groundrule.models.load import LanguageModel, wrap
from groundrule.models.sampling import Sample, SamplingRequest
from tiny import ASK, END, full_logprobs, tiny_model, tiny_network

PROMPT = (1, 30, 31, 2, 40, 41)
OTHER = (1, 90, 91, 92)


def ask(prompt: tuple[int, ...] = PROMPT, **more: Any) -> SamplingRequest:
    return SamplingRequest(prompt, **{"max_tokens": 12, "temperature": 0.0, **more})


def without_end(seed: int = 0) -> LanguageModel:
    """The tiny model with no id that ends a reply."""
    model = tiny_model(seed=seed)
    model.eos_ids = frozenset()
    return model


def plain_greedy(prompt: tuple[int, ...], count: int) -> list[int]:
    network, ids = tiny_network(), list(prompt)
    with torch.inference_mode():
        for _ in range(count):
            ids.append(int(network(input_ids=torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
    return ids[len(prompt) :]


@pytest.mark.parametrize("prompt", [PROMPT, OTHER])
def test_greedy_takes_the_likeliest_token_of_the_plain_model_at_every_step(prompt: tuple[int, ...]) -> None:
    [sample] = generate(without_end(), [ask(prompt)])

    assert sample.token_ids == plain_greedy(prompt, 12)


@pytest.mark.parametrize("temperature", [1.0, 0.7, 0.0])
def test_logprobs_are_those_of_the_plain_model_at_that_temperature(temperature: float) -> None:
    [sample] = generate(without_end(), [ask(temperature=temperature, top_p=0.8, seed=3)])

    with torch.inference_mode():
        wanted = full_logprobs(tiny_network(), PROMPT, sample.token_ids, temperature=temperature or 1.0)
    assert sample.logprobs == pytest.approx(wanted.tolist(), abs=1e-4)


def test_memory_of_the_batch_is_written_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows come and go, and whatever the memory held that the batch moves into must not show."""
    mixed = [ask((PROMPT, OTHER)[i % 2], temperature=1.0, seed=i, max_tokens=3 + 5 * i) for i in range(9)]
    expected = [sample.token_ids for sample in generate(without_end(), mixed, max_rows=3)]
    made = decoding._buffers

    def spoiled(*given: Any) -> Any:
        buffers = made(*given)
        buffers.memory.fill_(float("nan"))
        return buffers

    monkeypatch.setattr(decoding, "_buffers", spoiled)
    monkeypatch.setattr(decoding, "ROOM", 4)
    assert [sample.token_ids for sample in generate(without_end(), mixed, max_rows=3)] == expected


def test_a_seed_gives_the_same_text_alone_and_inside_a_batch() -> None:
    model = without_end()
    [alone] = generate(model, [ask(temperature=1.0, seed=5)])

    crowd = [ask(OTHER, temperature=1.0, seed=i, max_tokens=3 + i) for i in range(6)]
    batch = generate(model, [*crowd, ask(temperature=1.0, seed=5), *crowd])

    assert batch[6].token_ids == alone.token_ids


def test_samples_come_back_in_the_order_of_the_requests() -> None:
    requests = [ask(prompt, temperature=1.0, seed=i) for i, prompt in enumerate([PROMPT, OTHER] * 3)]
    model = without_end()

    together = generate(model, requests)

    assert [s.token_ids for s in together] == [generate(model, [r])[0].token_ids for r in requests]


def test_more_requests_than_rows_are_decoded_in_turn() -> None:
    requests = [ask(temperature=1.0, seed=i) for i in range(5)]
    model = without_end()

    few = [s.token_ids for s in generate(model, requests, max_rows=2)]

    assert few == [s.token_ids for s in generate(model, requests)]


def test_other_seeds_give_other_texts() -> None:
    samples = generate(without_end(), [ask(temperature=1.0, seed=i) for i in range(8)])

    assert len({tuple(s.token_ids) for s in samples}) == 8


def test_tokens_are_drawn_as_often_as_they_are_likely() -> None:
    count = 4000
    samples = generate(
        without_end(), [ask(temperature=0.7, seed=i, max_tokens=1) for i in range(count)], max_rows=500
    )

    with torch.inference_mode():
        logits = tiny_network()(input_ids=torch.tensor([PROMPT])).logits[0, -1] / 0.7
    probabilities = torch.softmax(logits, dim=-1)
    found = torch.bincount(torch.tensor([s.token_ids[0] for s in samples]), minlength=260) / count
    assert float((found - probabilities).abs().max()) < 0.03


def test_a_small_nucleus_leaves_only_the_likeliest_token() -> None:
    samples = generate(without_end(), [ask(temperature=1.0, top_p=1e-6, seed=i) for i in range(4)])

    assert {tuple(s.token_ids) for s in samples} == {tuple(plain_greedy(PROMPT, 12))}


def test_tokens_outside_the_nucleus_are_never_drawn() -> None:
    samples = generate(
        without_end(), [ask(temperature=1.0, top_p=0.5, seed=i, max_tokens=1) for i in range(300)]
    )

    with torch.inference_mode():
        logits = tiny_network()(input_ids=torch.tensor([PROMPT])).logits[0, -1]
    ordered, index = torch.softmax(logits, dim=-1).sort(descending=True)
    inside = set(index[ordered.cumsum(-1) - ordered < 0.5].tolist())
    assert {s.token_ids[0] for s in samples} <= inside


def test_an_answer_is_cut_at_its_limit() -> None:
    long, short = generate(without_end(), [ask(max_tokens=9), ask(max_tokens=4)])

    assert (len(long.token_ids), len(short.token_ids)) == (9, 4)
    assert (long.finish_reason, short.finish_reason) == ("length", "length")


def ended_at(position: int, *more_ends: int) -> Sample:
    """A greedy sample of the model in which the token at this position is an end id."""
    model = without_end()
    model.eos_ids = frozenset({plain_greedy(PROMPT, position + 1)[position], *more_ends})
    return generate(model, [ask()])[0]


def test_an_end_token_ends_the_answer_and_is_kept_among_its_tokens() -> None:
    sample = ended_at(0)

    assert sample.token_ids == plain_greedy(PROMPT, 1)
    assert (sample.finish_reason, sample.text) == ("stop", "")
    assert len(sample.logprobs) == 1


def test_any_of_several_end_ids_ends_the_answer() -> None:
    assert ended_at(0, 1, END).finish_reason == "stop"


def test_no_end_token_is_added_to_a_cut_answer() -> None:
    [sample] = generate(without_end(), [ask(max_tokens=3)])

    assert sample.token_ids == plain_greedy(PROMPT, 3)


def test_a_stop_string_ends_the_answer_before_it() -> None:
    model = without_end()
    [whole] = generate(model, [ask(OTHER, max_tokens=12)])
    third = whole.text[2]

    [sample] = generate(model, [ask(OTHER, stop=("never", third))])

    assert sample.text == whole.text[: whole.text.index(third)]
    assert sample.finish_reason == "stop"


def test_sampled_tokens_are_kept_up_to_the_one_that_completed_the_stop_string() -> None:
    model = without_end()
    [whole] = generate(model, [ask(OTHER)])
    stop = model.tokenizer.decode(whole.token_ids[:1])

    [sample] = generate(model, [ask(OTHER, stop=(stop,))])

    assert sample.token_ids == whole.token_ids[:1]


def test_the_ends_of_the_generation_config_count_beside_the_tokenizer_s() -> None:
    network = tiny_network()
    network.generation_config.eos_token_id = [3, 106]

    assert wrap("tiny", network, tiny_model().tokenizer).eos_ids == {2, 3, 106}


def test_the_rows_still_being_decoded_are_told() -> None:
    heard: list[int] = []

    generate(without_end(), [ask(max_tokens=1), ask(max_tokens=3)], on_step=heard.append)

    assert heard == [1, 1, 0]


def test_a_rendered_conversation_is_answered() -> None:
    model = tiny_model()

    [sample] = generate(model, [ask(tuple(model.renderer.prompt_ids(ASK)), max_tokens=2)])

    assert len(sample.token_ids) in (1, 2)
