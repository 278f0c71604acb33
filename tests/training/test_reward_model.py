"""Reward models: what is computed, that sharing and splitting change nothing, and that a rule is learned."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch

from groundrule.algorithms.ranking_loss import RankingLossConfig
from groundrule.data.group import TrajectoryGroup
from groundrule.data.preferences import Ranking
from groundrule.errors import TrainingError
from groundrule.models.load import LanguageModel
from groundrule.models.lora import LoraSettings, adapter_parameters, using_adapter
from groundrule.training.lora_trainer import LoraTrainer, TrainerSettings
from groundrule.training.ranking_batch import bundles, read_rankings
from groundrule.training.reward_evaluation import evaluate_rankings
from groundrule.training.reward_model import RewardModelSettings, RewardModelTrainer
from preferences import ranking, shorter_is_better
from tiny import close, sampled_trajectories, tiny_model

SMALL = LoraSettings(rank=4, alpha=8)
RANKINGS = [
    ranking("Yes.", ["No.", "Yes, on a lead."], "Ask us.", certainty=0.9, margins=[0.5, 1.0]),
    ranking("Behind us.", "Behind", question="Parking?"),
]


def trainer(*, moved: bool = True, model: LanguageModel | None = None, **settings: Any) -> RewardModelTrainer:
    """A trainer of the tiny model, its head and adapter `moved` away from the zeros that they start as."""
    made = RewardModelTrainer(model or tiny_model(), RewardModelSettings(lora=SMALL, **settings))
    random = torch.Generator().manual_seed(0)
    for parameter in made.parameters.values() if moved else ():
        with torch.no_grad():
            parameter.copy_(torch.randn(parameter.shape, generator=random) * 0.1)
    return made


def plain_values(made: RewardModelTrainer, given: Ranking) -> list[torch.Tensor]:
    """By one plain pass for each answer, over prompt and answer."""
    model = made.reward_model.model
    found = []
    for answer in given.answers:
        text = "".join(
            f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in [*given.prompt, *answer.messages]
        )
        ids = model.tokenizer(
            text.removesuffix("\n"), return_tensors="pt", add_special_tokens=False
        ).input_ids
        hidden = model.core(input_ids=ids, use_cache=False).last_hidden_state[0, -1]
        found.append(made.reward_model.head(hidden)[0])
    return found


def plain_loss(made: RewardModelTrainer) -> torch.Tensor:
    """Pairwise Bradley-Terry of the two rankings, written out."""
    a, b, c, d = plain_values(made, RANKINGS[0])
    pairs = [(a, b, 0.5), (a, c, 0.5), (a, d, 1.5), (b, d, 1.0), (c, d, 1.0)]
    first = torch.stack(
        [
            -0.9 * torch.log(torch.sigmoid(x - y - 2 * m))
            - 0.1 * torch.log(torch.sigmoid(y - x + 2 * m))
            + 0.01 * (x + y) ** 2
            for x, y, m in pairs
        ]
    ).mean()
    e, f = plain_values(made, RANKINGS[1])
    second = -torch.log(torch.sigmoid(e - f)) + 0.01 * (e + f) ** 2
    return (first + second) / 2


MARGINS = RankingLossConfig(margin_weight=2.0)


@pytest.mark.parametrize("tokens_at_once", [8, 70, 4096])
def test_a_step_has_the_loss_and_gradient_of_plain_passes_however_it_is_split(tokens_at_once: int) -> None:
    made = trainer(tokens_at_once=tokens_at_once, loss=MARGINS)
    with made.reward_model.switched_on():
        wanted = plain_loss(made)
        gradients = torch.autograd.grad(wanted, list(made.parameters.values()))

    loss, _ = made.accumulate(read_rankings(RANKINGS, made.reward_model))

    found = [p.grad for p in made.parameters.values()]
    assert loss == pytest.approx(wanted.item(), abs=1e-5)
    assert max(close(a, b) for a, b in zip(found, gradients, strict=True) if a is not None) < 1e-3
    assert all(a is not None for a in found)


@pytest.mark.parametrize("kind", ["bradley-terry", "plackett-luce"])
def test_gradients_are_finite_differences_of_the_loss(kind: str) -> None:
    made = trainer(loss=RankingLossConfig(kind=kind))  # type: ignore[arg-type]
    read = read_rankings(RANKINGS, made.reward_model)
    made.accumulate(read)
    slope = math.sqrt(sum(float(p.grad.square().sum()) for p in made.parameters.values()))
    direction = {name: p.grad / slope for name, p in made.parameters.items()}

    def moved(step: float) -> float:
        with torch.no_grad():
            for name, parameter in made.parameters.items():
                parameter.add_(step * direction[name])
        return made.accumulate(read)[0]

    above, below = moved(1e-3), moved(-2e-3)

    assert (above - below) / 2e-3 == pytest.approx(slope, rel=0.02)


def test_first_values_are_zero_and_the_first_loss_is_that_of_guessing() -> None:
    made = trainer(moved=False)

    [metrics] = made.fit([RANKINGS[1]])

    assert metrics["reward_model/loss"] == pytest.approx(math.log(2))
    assert metrics["reward_model/accuracy"] == 0.5
    assert metrics["reward_model/value_std"] == 0.0


def test_the_shared_prompt_is_read_once() -> None:
    [first, _] = read_rankings(RANKINGS, trainer(moved=False).reward_model)

    prompt = len("_system\nBe brief._\n_user\nRefunds?_\n_assistant\n")
    answers = sum(len(a.text) + 1 for a in RANKINGS[0].answers)
    # "Yes." and "Yes, on a lead." begin with the same three bytes.
    assert first.tokens == prompt + answers - 3
    assert sum(len(path.read) for path in first.paths) == 4 * prompt + answers


def test_a_ranking_counts_once_however_many_pairs_it_has() -> None:
    made = trainer()
    read = read_rankings(RANKINGS, made.reward_model)
    alone = [made.accumulate([one])[0] for one in read]

    assert made.accumulate(read)[0] == pytest.approx(sum(alone) / 2, abs=1e-6)


def test_rankings_are_bundled_in_order_and_none_is_taken_apart() -> None:
    read = read_rankings([*RANKINGS, *RANKINGS], trainer(moved=False).reward_model)
    sizes = [r.tokens for r in read]

    assert [len(b) for b in bundles(read, sizes[0] + sizes[1])] == [2, 2]
    assert [len(b) for b in bundles(read, 1)] == [1, 1, 1, 1]


def test_a_rule_is_learned_and_holds_on_prompts_that_were_not_seen() -> None:
    made = trainer(moved=False, epochs=4, learning_rate=0.02)

    list(made.fit(shorter_is_better(48, seed=1)))

    found = evaluate_rankings(made.reward_model, shorter_is_better(24, seed=2))
    assert found.pairs == 72
    assert found.accuracy.value is not None and found.accuracy.value > 0.8


def test_plackett_luce_learns_it_too() -> None:
    made = trainer(moved=False, epochs=4, learning_rate=0.02, loss=RankingLossConfig(kind="plackett-luce"))

    list(made.fit(shorter_is_better(48, seed=1)))

    found = evaluate_rankings(made.reward_model, shorter_is_better(24, seed=2))
    assert found.accuracy.value is not None and found.accuracy.value > 0.8


def test_after_training_the_values_have_mean_0_and_deviation_1_on_the_scale() -> None:
    made = trainer(moved=False, epochs=2, learning_rate=0.02)
    list(made.fit(RANKINGS))

    read = read_rankings(RANKINGS, made.reward_model)
    raw = made.reward_model.raw_values([p for r in read for p in r.paths])
    standard = [made.reward_model.scale.standard(v) for v in raw]

    assert sum(standard) == pytest.approx(0.0, abs=1e-4)
    assert sum(v * v for v in standard) / len(standard) == pytest.approx(1.0, abs=1e-4)


def test_the_same_seed_gives_the_same_weights() -> None:
    first, second = trainer(moved=False, rankings_per_step=1), trainer(moved=False, rankings_per_step=1)
    for made in (first, second):
        list(made.fit(RANKINGS))

    pairs = zip(first.parameters.values(), second.parameters.values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_the_learning_rate_falls_along_a_line() -> None:
    made = trainer(rankings_per_step=1, learning_rate=0.01)

    rates = [metrics["reward_model/learning_rate"] for metrics in made.fit(RANKINGS)]

    assert rates == pytest.approx([0.01, 0.0055])


def test_rankings_of_ties_only_are_left_out() -> None:
    made = trainer(moved=False)

    [metrics] = made.fit([ranking(["Yes.", "No."]), RANKINGS[1]])

    assert metrics["reward_model/rankings"] == 1


def test_only_ties_are_refused() -> None:
    with pytest.raises(TrainingError, match="1 rankings, and none puts one answer above another"):
        list(trainer(moved=False).fit([ranking(["Yes.", "No."])]))
    with pytest.raises(TrainingError, match="nothing to measure"):
        evaluate_rankings(trainer(moved=False).reward_model, [ranking(["Yes.", "No."])])


def test_an_answer_that_is_too_long_is_refused_by_its_place() -> None:
    with pytest.raises(TrainingError, match=r"ranking 1, answer 'long': the conversation has \d+ tokens"):
        list(
            trainer(moved=False).fit(
                [
                    RANKINGS[0],
                    Ranking(
                        prompt="Refunds?",
                        answers=[{"id": "short", "text": "Yes."}, {"id": "long", "text": "y" * 600}],
                        order=["short", "long"],
                    ),
                ]
            )
        )


def test_a_policy_on_the_same_base_is_neither_moved_nor_seen() -> None:
    model = tiny_model()
    policy = LoraTrainer(model, TrainerSettings(lora=SMALL, learning_rate=0.01))
    policy.step([TrajectoryGroup(sampled_trajectories(model, [0.0, 1.0]))])
    before = {name: p.clone() for name, p in policy.parameters.items()}

    beside, alone = trainer(moved=False, model=model), trainer(moved=False)
    losses = [[m["reward_model/loss"] for m in made.fit(RANKINGS)] for made in (beside, alone)]

    assert losses[0] == losses[1]
    assert all(torch.equal(p, before[name]) for name, p in policy.parameters.items())
    assert all(p.requires_grad for p in policy.parameters.values())


def test_a_policy_trained_after_a_reward_model_on_its_base_moves_its_own_adapter_only() -> None:
    model = tiny_model()
    made = trainer(model=model)
    before = {name: p.clone() for name, p in made.parameters.items()}

    policy = LoraTrainer(model, TrainerSettings(lora=SMALL, learning_rate=0.01))
    metrics = policy.step([TrajectoryGroup(sampled_trajectories(model, [0.0, 1.0]))])

    assert metrics["train/updated"] == 1.0
    assert set(policy.parameters) == set(adapter_parameters(model))
    assert all(torch.equal(p, before[name]) for name, p in made.parameters.items())
    with using_adapter(model, made.reward_model.adapter):
        assert all(not p.requires_grad for p in policy.parameters.values())
