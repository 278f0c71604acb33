"""Policy losses against golden numbers and against finite differences."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from groundrule.algorithms.loss_settings import PolicyLossConfig
from groundrule.algorithms.policy_loss import (
    KlEstimator,
    importance_weights,
    kl_terms,
    token_losses,
    token_weights,
)

NEW = [[-1.0, -2.0, -0.5, -1.5], [-0.7, -1.2, -2.2]]
OLD = [[-1.1, -1.6, -0.9, -1.5], [-0.9, -1.2, -1.7]]
REFERENCE = [[-1.2, -1.9, -0.6, -1.4], [-0.8, -1.0, -2.0]]
BEHAVIOUR = [[-1.3, -2.5, -0.9, -1.5], [-0.8, -1.0, -1.6]]
ADVANTAGES = [1.0, -0.5]


def step_loss(**settings: Any) -> float:
    """The loss of both sequences together."""
    config = PolicyLossConfig(**settings)
    weights = token_weights([len(row) for row in NEW], config)
    losses = [
        token_losses(torch.tensor(n), torch.tensor(o), a, config)
        for n, o, a in zip(NEW, OLD, ADVANTAGES, strict=True)
    ]
    return sum(w * float(x.sum()) for w, x in zip(weights, losses, strict=True))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, -0.363541),
        ({"aggregation": "sequence_mean"}, -0.255153),
        ({"aggregation": "fixed_length", "fixed_length": 4}, -0.318099),
        ({"loss": "gspo", "aggregation": "sequence_mean"}, -0.286448),
        ({"loss": "cispo"}, 0.41302),
    ],
)
def test_golden_loss_of_two_sequences(settings: dict[str, Any], expected: float) -> None:
    assert step_loss(**settings) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("row", "ratio"), [(0, 1.025315), (1, 0.904837)])
def test_gspo_has_one_ratio_a_sequence(row: int, ratio: float) -> None:
    wide = PolicyLossConfig(loss="gspo", clip_low=0.9, clip_high=9.0)

    losses = token_losses(torch.tensor(NEW[row]), torch.tensor(OLD[row]), -1.0, wide)

    assert losses.tolist() == pytest.approx([ratio] * len(NEW[row]), abs=1e-6)


@pytest.mark.parametrize(("estimator", "expected"), [("k1", -0.028571), ("k2", 0.011429), ("k3", 0.011650)])
def test_golden_kl_to_the_reference(estimator: KlEstimator, expected: float) -> None:
    terms = [
        kl_terms(torch.tensor(n), torch.tensor(r), estimator) for n, r in zip(NEW, REFERENCE, strict=True)
    ]

    assert float(torch.cat(terms).mean()) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("advantage", "expected"), [(-1.0, 3.0), (1.0, -1.2)])
def test_dual_clip_bounds_the_loss_of_a_bad_answer_only(advantage: float, expected: float) -> None:
    config = PolicyLossConfig(clip_high=0.2, dual_clip=3.0)

    losses = token_losses(torch.log(torch.tensor([100.0])), torch.zeros(1), advantage, config)

    assert float(losses[0]) == pytest.approx(expected, rel=1e-6)


def test_a_bad_answer_is_not_bounded_without_dual_clip() -> None:
    losses = token_losses(torch.log(torch.tensor([100.0])), torch.zeros(1), -1.0, PolicyLossConfig())

    assert float(losses[0]) == pytest.approx(100.0, rel=1e-5)


@pytest.mark.parametrize("loss", ["clipped", "gspo"])
def test_a_ratio_of_one_gives_minus_the_advantage(loss: Any) -> None:
    same = torch.tensor([-1.0, -2.0])

    assert token_losses(same, same, 0.75, PolicyLossConfig(loss=loss)).tolist() == [-0.75, -0.75]


def test_cispo_weighs_a_likelier_token_by_at_most_the_cap() -> None:
    new, old = torch.tensor([-1.0]), torch.tensor([-3.0])

    assert token_losses(new, old, 1.0, PolicyLossConfig(loss="cispo")).tolist() == pytest.approx([1.28])


def test_cispo_does_not_send_gradient_through_its_weight() -> None:
    new = torch.tensor([-1.0], requires_grad=True)

    token_losses(new, torch.tensor([-1.1]), 1.0, PolicyLossConfig(loss="cispo")).sum().backward()

    assert new.grad is not None
    assert float(new.grad) == pytest.approx(-1.105171, abs=1e-6)


@pytest.mark.parametrize("loss", ["clipped", "gspo"])
@pytest.mark.parametrize("advantage", [1.0, -0.5])
@pytest.mark.parametrize("dual_clip", [None, 3.0])
def test_gradient_is_that_of_finite_differences(loss: Any, advantage: float, dual_clip: float | None) -> None:
    config = PolicyLossConfig(loss=loss, dual_clip=dual_clip)
    old = torch.tensor(OLD[0], dtype=torch.float64)
    new = torch.tensor([-1.0, -2.05, -0.5, -1.55], dtype=torch.float64, requires_grad=True)

    assert torch.autograd.gradcheck(lambda n: token_losses(n, old, advantage, config), (new,))


@pytest.mark.parametrize("estimator", ["k1", "k2", "k3"])
def test_kl_gradient_is_that_of_finite_differences(estimator: KlEstimator) -> None:
    new = torch.tensor(NEW[0], dtype=torch.float64, requires_grad=True)
    reference = torch.tensor(REFERENCE[0], dtype=torch.float64)

    assert torch.autograd.gradcheck(lambda n: kl_terms(n, reference, estimator), (new,))


def test_a_token_beyond_the_upper_bound_sends_no_gradient() -> None:
    new = torch.tensor([0.0, -1.0], requires_grad=True)

    token_losses(new, torch.tensor([-0.5, -1.0]), 1.0, PolicyLossConfig()).sum().backward()

    assert new.grad is not None
    assert new.grad.tolist() == [0.0, -1.0]


@pytest.mark.parametrize(
    ("aggregation", "expected"),
    [
        ("token_mean", [0.125, 0.125, 0.125]),
        ("sequence_mean", [1 / 3, 1 / 9, 1 / 12]),
        ("fixed_length", [1 / 30, 1 / 30, 1 / 30]),
    ],
)
def test_weights_of_three_sequences(aggregation: Any, expected: list[float]) -> None:
    config = PolicyLossConfig(aggregation=aggregation, fixed_length=10)

    assert token_weights([1, 3, 4], config) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("importance", "expected"),
    [
        ("none", [[1.0, 1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]),
        ("token", [[1.221403, 2.0, 1.0, 1.0], [0.904837, 0.818731, 0.904837]]),
        ("sequence", [[2.0, 2.0, 2.0, 2.0], [0.670320, 0.670320, 0.670320]]),
    ],
)
def test_golden_importance_weights(importance: Any, expected: list[list[float]]) -> None:
    config = PolicyLossConfig(importance=importance)

    for old, behaviour, weights in zip(OLD, BEHAVIOUR, expected, strict=True):
        found = importance_weights(torch.tensor(old), torch.tensor(behaviour), config)
        assert found.tolist() == pytest.approx(weights, abs=1e-6)


@pytest.mark.parametrize(("importance", "expected"), [("token", -0.520945), ("sequence", -1.014047)])
def test_golden_loss_with_importance(importance: Any, expected: float) -> None:
    config = PolicyLossConfig(importance=importance)
    total = 0.0
    for new, old, behaviour, advantage in zip(NEW, OLD, BEHAVIOUR, ADVANTAGES, strict=True):
        weights = importance_weights(torch.tensor(old), torch.tensor(behaviour), config)
        total += float(
            (weights * token_losses(torch.tensor(new), torch.tensor(old), advantage, config)).sum()
        )

    assert total / 7 == pytest.approx(expected, abs=1e-6)


def test_the_cap_is_a_setting() -> None:
    config = PolicyLossConfig(importance="token", importance_cap=1.1)

    found = importance_weights(torch.tensor(OLD[0]), torch.tensor(BEHAVIOUR[0]), config)

    assert found.tolist() == pytest.approx([1.1, 1.1, 1.0, 1.0])


def test_importance_stays_finite_where_the_sampler_gave_almost_nothing() -> None:
    config = PolicyLossConfig(importance="sequence", importance_cap=5.0)

    found = importance_weights(torch.tensor([-1.0, -1.0]), torch.tensor([-900.0, -900.0]), config)

    assert found.tolist() == [5.0, 5.0]


@pytest.mark.parametrize("importance", ["token", "sequence"])
def test_gradient_with_importance_is_that_of_finite_differences(importance: Any) -> None:
    config = PolicyLossConfig(importance=importance)
    old, behaviour = torch.tensor(OLD[0]).double(), torch.tensor(BEHAVIOUR[0]).double()
    new = torch.tensor(NEW[0], dtype=torch.float64, requires_grad=True)

    def total(values: torch.Tensor) -> torch.Tensor:
        return (importance_weights(old, behaviour, config) * token_losses(values, old, 1.0, config)).sum()

    assert torch.autograd.gradcheck(total, (new,), eps=1e-6, atol=1e-6)


def test_no_gradient_passes_through_the_importance() -> None:
    config = PolicyLossConfig(importance="token")
    new = torch.tensor(NEW[0], requires_grad=True)

    assert not importance_weights(new, torch.tensor(BEHAVIOUR[0]), config).requires_grad


def test_an_unknown_setting_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="clip_up"):
        PolicyLossConfig(clip_up=0.3)


def test_every_token_may_have_an_advantage_of_its_own() -> None:
    new, old = torch.tensor([0.3, -0.4, 1.5]), torch.zeros(3)
    config = PolicyLossConfig(dual_clip=3.0)

    together = token_losses(new, old, torch.tensor([1.0, 0.0, -0.5]), config)

    # min(e^0.3, 1.28) x 1; nothing; -0.5 x e^1.5 is held at 3 x 0.5.
    assert together.tolist() == pytest.approx([-1.28, 0.0, 1.5])
