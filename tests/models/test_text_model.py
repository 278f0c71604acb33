"""The frozen model behind the likelihood judge: token logprobs of given texts, shared parts computed once."""

from __future__ import annotations

import pytest
import torch

from groundrule.models.load import LanguageModel
from groundrule.models.lora import LoraSettings, adapter_parameters, add_adapter
from groundrule.models.text_model import FrozenTextModel
from groundrule.rewards.likelihood import Continuation
from tiny import full_logprobs, tiny_model, tiny_network

SYSTEM = {"role": "system", "content": "Be brief."}


def asked(question: str, text: str) -> Continuation:
    return Continuation([SYSTEM, {"role": "user", "content": question}], text)


def plain(model: LanguageModel, continuation: Continuation) -> list[float]:
    prompt = model.renderer.prompt_ids(continuation.messages)
    answer = model.tokenizer.encode(continuation.text, add_special_tokens=False)
    with torch.inference_mode():
        return full_logprobs(tiny_network(), prompt, answer).tolist()  # type: ignore[no-any-return]


def test_texts_have_the_logprobs_of_plain_passes() -> None:
    model = tiny_model()
    continuations = [asked("Refunds?", "30 days."), asked("Refunds?", "No"), asked("Returns?", "Yes, free.")]

    found = FrozenTextModel(model).logprobs(continuations)

    for result, continuation in zip(found, continuations, strict=True):
        assert result.logprobs == pytest.approx(plain(model, continuation), abs=1e-4)


def test_tokens_stand_beside_their_logprobs() -> None:
    [result] = FrozenTextModel(tiny_model()).logprobs([asked("q", "abc")])

    assert result.tokens == ["a", "b", "c"]
    assert len(result.logprobs) == 3


def test_conversations_that_have_nothing_in_common_are_read_apart() -> None:
    model = tiny_model()
    model.tokenizer.chat_template = (
        "{% for m in messages %}{{ m['role'] }}{{ m['content'] }}{% endfor %}{{ '>' }}"
    )
    continuations = [
        Continuation([{"role": "user", "content": "a"}], "x"),
        Continuation([SYSTEM], "y"),
    ]

    found = FrozenTextModel(model).logprobs(continuations)

    for result, continuation in zip(found, continuations, strict=True):
        assert result.logprobs == pytest.approx(plain(model, continuation), abs=1e-4)


def test_a_conversation_that_begins_another_is_read_whole() -> None:
    model = tiny_model()
    model.tokenizer.chat_template = "{% for m in messages %}{{ m['content'] }}{% endfor %}"
    continuations = [Continuation([{"role": "user", "content": text}], "x") for text in ("ab", "abc", "abcd")]

    found = FrozenTextModel(model).logprobs(continuations)

    for result, continuation in zip(found, continuations, strict=True):
        assert result.logprobs == pytest.approx(plain(model, continuation), abs=1e-4)


def test_many_texts_come_back_in_their_order() -> None:
    model = tiny_model()
    texts = [f"answer {i}" for i in range(40)]

    found = FrozenTextModel(model).logprobs([asked("q", text) for text in texts])

    assert ["".join(result.tokens) for result in found] == texts


def test_equal_texts_get_equal_numbers() -> None:
    first, _, again = FrozenTextModel(tiny_model()).logprobs(
        [asked("q", "a"), asked("q", "b"), asked("q", "a")]
    )

    assert first == again


def test_a_trained_adapter_does_not_move_the_judge() -> None:
    model = tiny_model()
    before = FrozenTextModel(model).logprobs([asked("q", "abc")])
    add_adapter(model, LoraSettings(rank=2), seed=0)
    with torch.no_grad():
        for parameter in adapter_parameters(model).values():
            parameter.fill_(0.3)

    after = FrozenTextModel(model).logprobs([asked("q", "abc")])

    assert after[0].logprobs == pytest.approx(before[0].logprobs, abs=1e-5)


def test_an_end_marker_that_an_answer_spells_out_is_judged_as_text() -> None:
    [result] = FrozenTextModel(tiny_model()).logprobs([asked("q", "<|im_end|>")])

    assert len(result.tokens) == 10


def test_no_texts_give_no_numbers() -> None:
    assert FrozenTextModel(tiny_model()).logprobs([]) == []
