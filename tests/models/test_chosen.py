"""Chosen-token logprobs are those of log-softmax, forwards and backwards, and keep no logits."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from groundrule.models import chosen
from groundrule.models.chosen import chosen_logprobs

POSITIONS, WIDTH, VOCABULARY = 23, 8, 50


def setting(
    *, bias: bool = False, dtype: torch.dtype = torch.float32
) -> tuple[Any, torch.Tensor, torch.Tensor]:
    """A frozen output layer, hidden states and tokens."""
    torch.manual_seed(0)
    head = torch.nn.Linear(WIDTH, VOCABULARY, bias=bias).to(dtype).requires_grad_(False)
    hidden = torch.randn(POSITIONS, WIDTH).to(dtype).requires_grad_()
    return head, hidden, torch.randint(VOCABULARY, (POSITIONS,))


def plain(head: Any, hidden: torch.Tensor, tokens: torch.Tensor, heat: torch.Tensor) -> torch.Tensor:
    logits = head(hidden).float() / heat[:, None]
    return torch.log_softmax(logits, dim=-1).gather(-1, tokens[:, None])[:, 0]


@pytest.mark.parametrize("logits_at_once", [1, 3 * VOCABULARY, 2**24])
@pytest.mark.parametrize("bias", [False, True])
def test_values_and_gradients_are_those_of_log_softmax(
    monkeypatch: pytest.MonkeyPatch, logits_at_once: int, bias: bool
) -> None:
    monkeypatch.setattr(chosen, "LOGITS_AT_ONCE", logits_at_once)
    head, hidden, tokens = setting(bias=bias)
    heat = torch.linspace(0.5, 2.0, POSITIONS)
    weights = torch.linspace(-1, 1, POSITIONS)

    found = chosen_logprobs(head, hidden, tokens, heat)
    (gradient,) = torch.autograd.grad((found * weights).sum(), hidden)
    wanted = plain(head, hidden, tokens, heat)
    (slope,) = torch.autograd.grad((wanted * weights).sum(), hidden)

    assert float((found - wanted).abs().max().detach()) < 1e-5
    assert float((gradient - slope).abs().max()) < 1e-6


def test_the_gradient_is_that_of_finite_differences() -> None:
    head, hidden, tokens = setting()
    (gradient,) = torch.autograd.grad(chosen_logprobs(head, hidden, tokens, 0.7).sum(), hidden)

    def total(shift: float) -> float:
        moved = hidden.detach().double()
        moved[4, 2] += shift
        logits = moved @ head.weight.double().T / 0.7
        return float(torch.log_softmax(logits, -1).gather(-1, tokens[:, None]).sum())

    slope = (total(1e-4) - total(-1e-4)) / 2e-4
    assert float(gradient[4, 2]) == pytest.approx(slope, abs=1e-5)


def test_a_temperature_of_zero_counts_as_one() -> None:
    head, hidden, tokens = setting()

    assert torch.equal(chosen_logprobs(head, hidden, tokens, 0.0), chosen_logprobs(head, hidden, tokens))


def test_a_trained_output_layer_gets_its_gradient() -> None:
    head, hidden, tokens = setting()
    head.requires_grad_(True)

    found = chosen_logprobs(head, hidden, tokens)
    (gradient,) = torch.autograd.grad(found.sum(), head.weight)
    (slope,) = torch.autograd.grad(plain(head, hidden, tokens, torch.ones(POSITIONS)).sum(), head.weight)

    assert float((gradient - slope).abs().max()) < 1e-5


def test_no_logits_are_kept_for_the_backward_pass() -> None:
    head, hidden, tokens = setting()
    sizes: list[int] = []

    def note(tensor: torch.Tensor) -> torch.Tensor:
        sizes.append(tensor.numel())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        chosen_logprobs(head, hidden, tokens)

    assert sizes == [POSITIONS * WIDTH]


def test_a_bf16_model_gets_float32_logprobs() -> None:
    head, hidden, tokens = setting(dtype=torch.bfloat16)

    found = chosen_logprobs(head, hidden, tokens)
    wanted = plain(head.float(), hidden.float(), tokens, torch.ones(POSITIONS))

    assert found.dtype == torch.float32
    assert float((found - wanted).abs().max().detach()) < 0.02
