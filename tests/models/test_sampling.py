"""Which token is drawn, and what log-probability is noted."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from groundrule.models.noise import Noise
from groundrule.models.sampling import Row, Sample, SamplingRequest, draw

LOGITS = torch.tensor([[2.0, 1.0, 0.0, -1.0, 1.9]])


def drawn(count: int = 400, said: tuple[int, ...] = (), **settings: Any) -> set[int]:
    """The tokens that come up in many draws after `said`."""
    found = set()
    for seed in range(count):
        request = SamplingRequest(prompt_ids=(3,), max_tokens=9, **settings)
        row = Row(request, Sample(token_ids=list(said)), Noise(seed))
        found.add(draw(LOGITS, [row])[0])
    return found


@pytest.mark.parametrize(
    ("settings", "tokens"),
    [
        ({}, {0, 1, 2, 3, 4}),
        ({"top_k": 1}, {0}),
        ({"top_k": 2}, {0, 4}),
        ({"top_k": 99}, {0, 1, 2, 3, 4}),
        ({"min_p": 0.9}, {0, 4}),
        ({"min_p": 0.3}, {0, 1, 4}),
        ({"top_p": 0.5}, {0, 4}),
        ({"top_p": 0.1}, {0}),
        ({"top_k": 2, "top_p": 0.5}, {0}),
        ({"temperature": 0.0, "top_k": 3}, {0}),
    ],
)
def test_filters_leave_the_tokens_that_they_name(settings: dict[str, Any], tokens: set[int]) -> None:
    assert drawn(**settings) == tokens


@pytest.mark.parametrize(
    ("settings", "said", "token"),
    [
        ({"presence_penalty": 0.2}, (0,), 4),
        ({"frequency_penalty": 0.06}, (0,), 0),
        ({"frequency_penalty": 0.06}, (0, 0), 4),
        ({"repetition_penalty": 1.1}, (0,), 4),
        ({"presence_penalty": 0.2}, (), 0),
    ],
)
def test_penalties_push_what_was_said_before(
    settings: dict[str, Any], said: tuple[int, ...], token: int
) -> None:
    assert drawn(1, said, temperature=0.0, **settings) == {token}


def test_a_repetition_penalty_makes_negative_logits_smaller_too() -> None:
    only = torch.tensor([[-1.0, -1.5]])
    request = SamplingRequest(prompt_ids=(), max_tokens=1, temperature=0.0, repetition_penalty=2.0)
    assert draw(only, [Row(request, Sample(token_ids=[0]), Noise(0))]) == [1]


@pytest.mark.parametrize("settings", [{}, {"top_k": 1}, {"presence_penalty": 1.0}, {"temperature": 0.5}])
def test_the_log_probability_is_that_of_the_temperature_alone(settings: dict[str, Any]) -> None:
    request = SamplingRequest(prompt_ids=(), max_tokens=1, **settings)
    row = Row(request, Sample(), Noise(1))
    [token] = draw(LOGITS, [row])
    expected = torch.log_softmax(LOGITS[0] / request.temperature, -1)[token].item()
    assert row.sample.logprobs == [pytest.approx(expected, abs=1e-6)]


def test_rows_do_not_touch_each_other() -> None:
    plain = SamplingRequest(prompt_ids=(), max_tokens=1)
    narrow = SamplingRequest(prompt_ids=(), max_tokens=1, top_k=1)
    rows = [Row(r, Sample(), Noise(7)) for r in (plain, narrow, plain)]
    together = draw(LOGITS.expand(3, -1), rows)
    alone = [draw(LOGITS, [Row(r.request, Sample(), Noise(7))])[0] for r in rows]
    assert together == alone


def test_a_nucleus_wider_than_the_usual_candidates_is_exact() -> None:
    flat = torch.zeros(1, 1000)
    request = SamplingRequest(prompt_ids=(), max_tokens=1, top_p=0.9)
    tokens = {draw(flat, [Row(request, Sample(), Noise(s))])[0] for s in range(3000)}
    assert len(tokens) == pytest.approx(900 * (1 - math.exp(-3000 / 900)), rel=0.03)
