"""One step of GRPO: its gradient is that of the plain loss, and what cannot teach does not move a bit."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
import torch

from groundrule.algorithms.loss_settings import PolicyLossConfig
from groundrule.algorithms.policy_loss import (
    importance_weights,
    kl_terms,
    token_losses,
    token_weights,
)
from groundrule.algorithms.sequences import TokenSequence
from groundrule.data.group import TrajectoryGroup
from groundrule.data.trajectory import Trajectory
from groundrule.errors import TrainingError
from groundrule.models.load import wrap
from groundrule.models.lora import LoraSettings, adapter_state, load_adapter_state
from groundrule.training.batch import TrainingItem, plan_step
from groundrule.training.lora_trainer import LoraTrainer, TrainerSettings
from groundrule.training.step_gradient import StepGradient
from tiny import ASK, close, full_logprobs, sampled_trajectories, tiny_model, tiny_network

SMALL = LoraSettings(rank=4, alpha=8)
REWARDED = 177
"""A token that the tiny model says at about one place in 40."""
OTHER = [{"role": "user", "content": "How long may I return a thing?"}]


def trainer(*, moved: bool = True, seed: int = 0, **settings: Any) -> LoraTrainer:
    """A trainer of the tiny model whose adapter is `moved` away from the zero that it starts as."""
    made = LoraTrainer(tiny_model(), TrainerSettings(**{"lora": SMALL, **settings}), seed=seed)
    if moved:
        random = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in made.parameters.values():
                parameter.add_(torch.randn(parameter.shape, generator=random) * 0.1)
    return made


def two_groups(made: LoraTrainer, **more: Any) -> list[TrajectoryGroup]:
    """Three answers to one question and four to another, sampled from the trainer's own policy."""
    return [
        TrajectoryGroup(sampled_trajectories(made.model, [0.9, 0.1, 0.4], **more)),
        TrajectoryGroup(
            sampled_trajectories(made.model, [0.0, 1.0, 0.3, 0.8], messages=OTHER, seed=1, **more)
        ),
    ]


def two_turns() -> TrainingItem:
    """A conversation of two sampled turns with three tokens of a tool result between them."""
    sequence = TokenSequence(
        prompt_ids=(1, 40, 41, 42),
        ids=(50, 51, 2, 60, 61, 62, 52, 2),
        sampled=(True, True, True, False, False, False, True, True),
        logprobs=(-4.0, -5.0, -3.0, 0.0, 0.0, 0.0, -4.5, -6.0),
        temperature=0.7,
    )
    return TrainingItem(sequence, -0.8)


def late_branches() -> list[TrainingItem]:
    """Two conversations whose first answer is the same, token for token, with logprobs and advantages of their own."""
    begin = {"prompt_ids": (1, 40, 41, 42), "temperature": 0.7}
    first = TokenSequence(
        ids=(50, 51, 2, 60, 61, 70, 2),
        sampled=(True, True, True, False, False, True, True),
        logprobs=(-4.1, -5.2, -2.9, 0.0, 0.0, -3.0, -6.0),
        **begin,
    )
    second = TokenSequence(
        ids=(50, 51, 2, 60, 62, 71, 72, 2),
        sampled=(True, True, True, False, False, True, True, True),
        logprobs=(-3.9, -4.8, -3.2, 0.0, 0.0, -5.0, -4.0, -5.0),
        **begin,
    )
    return [TrainingItem(first, 0.9), TrainingItem(second, -0.5)]


def plain_gradient(made: LoraTrainer, items: list[TrainingItem]) -> dict[str, torch.Tensor]:
    """The gradient of the same loss, every sequence passed whole through eager attention."""
    twin = LoraTrainer(tiny_model(), made.settings)
    load_adapter_state(twin.model, adapter_state(made.model))
    twin.model.causal_lm.set_attn_implementation("eager")
    config = made.settings.policy_loss
    weights = token_weights([item.sequence.trained for item in items], config)
    loss = torch.zeros(())
    for item, weight in zip(items, weights, strict=True):
        sequence, mask = item.sequence, torch.tensor(item.sequence.sampled)
        where = (sequence.prompt_ids, sequence.ids)
        new = full_logprobs(twin.model.network, *where, temperature=sequence.temperature)[mask]
        old = torch.tensor(sequence.logprobs)[mask]
        proximal = old if config.importance == "none" else new.detach()
        terms = token_losses(new, proximal, item.advantage, config) * importance_weights(
            proximal, old, config
        )
        if config.kl_coef:
            with torch.no_grad(), twin.model.base_only():
                base = full_logprobs(twin.model.network, *where, temperature=sequence.temperature)[mask]
            terms = terms + config.kl_coef * kl_terms(new, base, config.kl_estimator)
        loss = loss + weight * terms.sum()
    loss.backward()
    return {name: p.grad for name, p in twin.parameters.items() if p.grad is not None}


@pytest.mark.parametrize("tokens_at_once", [1, 12, 40, 100_000])
@pytest.mark.parametrize(
    "policy_loss",
    [
        {},
        {"aggregation": "sequence_mean", "kl_coef": 0.2},
        {"loss": "gspo", "aggregation": "fixed_length", "dual_clip": 3.0},
        {"loss": "cispo", "kl_coef": 0.2, "kl_estimator": "k2"},
    ],
)
def test_the_gradient_is_that_of_plain_passes_however_the_step_is_cut(
    tokens_at_once: int, policy_loss: dict[str, Any]
) -> None:
    made = trainer(tokens_at_once=tokens_at_once, policy_loss=PolicyLossConfig(**policy_loss))
    items = plan_step(two_groups(made), made.settings, made.model).items
    items += [two_turns(), *late_branches()]
    for parameter in made.parameters.values():  # Off the policy that sampled, so that ratios differ.
        parameter.data.mul_(1.3)

    made.accumulate(items)

    wanted = plain_gradient(made, items)
    differences = [close(p.grad, wanted[name]) for name, p in made.parameters.items() if p.grad is not None]
    assert len(differences) == 28
    assert max(differences) < 1e-4


def test_the_first_step_s_ratios_are_one() -> None:
    made = trainer()

    metrics = made.step(two_groups(made, temperature=0.7))

    assert metrics["policy/ratio_max_error"] < 1e-4
    assert metrics["policy/clip_fraction"] == 0.0


def test_a_step_says_how_many_tokens_it_computed_and_how_many_were_shared() -> None:
    made = trainer()
    groups = two_groups(made)
    items = plan_step(groups, made.settings, made.model).items
    read = {(*i.sequence.prompt_ids, *i.sequence.ids)[:-1] for i in items}

    metrics = made.step(groups)

    assert metrics["train/unique_tokens"] == len({r[: i + 1] for r in read for i in range(len(r))})
    assert metrics["train/all_tokens"] == sum(len(i.sequence.prompt_ids + i.sequence.ids) - 1 for i in items)
    assert metrics["train/all_tokens"] > 2 * metrics["train/unique_tokens"]


def test_sharing_prefixes_changes_the_cost_and_not_the_gradient() -> None:
    shared, apart = trainer(), trainer(share_prefixes=False)
    items = plan_step(two_groups(shared), shared.settings, shared.model).items
    gradients = [StepGradient(made.model, items, made.settings) for made in (shared, apart)]

    for gradient in gradients:
        gradient.accumulate()

    assert gradients[1].sizes["train/unique_tokens"] == gradients[0].sizes["train/all_tokens"]
    pairs = [(p.grad, apart.parameters[n].grad) for n, p in shared.parameters.items()]
    assert max(close(a, b) for a, b in pairs if a is not None and b is not None) < 1e-4


def test_a_step_moves_the_adapter_and_nothing_else() -> None:
    made = trainer()
    before = {name: p.clone() for name, p in made.model.network.named_parameters()}

    metrics = made.step(two_groups(made))

    moved = {n for n, p in made.model.network.named_parameters() if not torch.equal(p, before[n])}
    assert moved == set(made.parameters)
    assert metrics["train/updated"] == 1.0


def test_groups_without_signal_leave_every_weight_bit_for_bit() -> None:
    made = trainer()
    tied = [
        TrajectoryGroup(sampled_trajectories(made.model, [1.0, 1.0])),
        TrajectoryGroup(sampled_trajectories(made.model, [0.0, 0.0], messages=OTHER)),
    ]
    before = {name: p.clone() for name, p in made.model.network.named_parameters()}

    metrics = made.step(tied)

    assert all(torch.equal(p, before[n]) for n, p in made.model.network.named_parameters())
    assert (metrics["train/updated"], metrics["train/groups_without_signal"]) == (0.0, 2.0)


def test_a_group_that_cannot_teach_adds_nothing_to_one_that_can() -> None:
    first, second = trainer(), trainer()
    teaching, more = two_groups(first)
    tied = more.with_members([t.model_copy(update={"reward": 0.5}) for t in more])

    first.step([teaching])
    second.step([teaching, tied])

    assert all(torch.equal(p, second.parameters[n]) for n, p in first.parameters.items())


def test_unscored_members_are_left_out() -> None:
    first, second = trainer(), trainer()
    scored = sampled_trajectories(first.model, [0.9, 0.1, 0.4])
    failed = sampled_trajectories(first.model, [0.0], seed=9)[0].model_copy(
        update={"unscored": "judge failed"}
    )

    without = first.step([TrajectoryGroup(scored)])
    beside = second.step([TrajectoryGroup([*scored[:1], failed, *scored[1:]])])

    assert all(torch.equal(p, second.parameters[n]) for n, p in first.parameters.items())
    assert (without["train/unscored"], beside["train/unscored"]) == (0.0, 1.0)
    assert beside["reward/mean"] == pytest.approx(0.466667, abs=1e-6)


def test_a_group_in_which_nobody_is_scored_teaches_nothing() -> None:
    made = trainer()
    members = [
        t.model_copy(update={"unscored": "no reply"}) for t in sampled_trajectories(made.model, [1.0, 0.0])
    ]

    metrics = made.step([TrajectoryGroup(members)])

    assert (metrics["train/updated"], metrics["train/unscored"]) == (0.0, 2.0)
    assert "reward/mean" not in metrics


def test_a_step_of_no_groups_teaches_nothing() -> None:
    assert trainer().step([])["train/updated"] == 0.0


def test_scored_answers_without_logprobs_are_refused_by_their_place() -> None:
    made = trainer()
    plain = [
        Trajectory(messages_and_choices=[*ASK, {"role": "assistant", "content": text}], reward=reward)
        for text, reward in (("yes", 1.0), ("no", 0.0))
    ]
    groups = [TrajectoryGroup(sampled_trajectories(made.model, [0.0, 1.0])), TrajectoryGroup(plain)]

    with pytest.raises(TrainingError, match=r"group 1, trajectory 0 has a reward but no sampled tokens"):
        made.step(groups)


def test_answers_without_logprobs_are_trained_where_that_is_allowed() -> None:
    made = trainer(allow_training_without_logprobs=True)
    plain = [
        Trajectory(messages_and_choices=[*ASK, {"role": "assistant", "content": text}], reward=reward)
        for text, reward in (("yes", 1.0), ("no", 0.0))
    ]

    metrics = made.step([TrajectoryGroup(plain)])

    assert metrics["train/updated"] == 1.0
    assert metrics["train/tokens"] == len("yes") + 1 + len("no") + 1


def test_a_scored_trajectory_without_an_answer_is_refused_where_logprobs_are_not_asked_for() -> None:
    made = trainer(allow_training_without_logprobs=True)
    asked = [Trajectory(messages_and_choices=list(ASK), reward=reward) for reward in (1.0, 0.0)]

    with pytest.raises(TrainingError, match="group 0, trajectory 0 has no assistant turn"):
        made.step([TrajectoryGroup(asked)])


def test_an_unreliable_judge_moves_the_gradient_less() -> None:
    made = trainer(max_grad_norm=1e9)
    members = sampled_trajectories(made.model, [0.9, 0.1])

    sure = plan_step([TrajectoryGroup(members)], made.settings, made.model)
    unsure = plan_step(
        [TrajectoryGroup(members, metrics={"judge_reliability": 0.25})], made.settings, made.model
    )

    assert [i.advantage for i in sure.items] == pytest.approx([1.0, -1.0])
    assert [i.advantage for i in unsure.items] == pytest.approx([0.25, -0.25])


def test_kl_to_the_base_model_is_zero_before_the_first_step() -> None:
    made = trainer(moved=False, policy_loss=PolicyLossConfig(kl_coef=0.1))

    assert made.step(two_groups(made))["policy/kl_reference"] == pytest.approx(0.0, abs=1e-6)


def test_kl_from_a_moved_adapter_is_logged() -> None:
    made = trainer(policy_loss=PolicyLossConfig(kl_coef=0.1))

    assert made.step(two_groups(made))["policy/kl_reference"] > 1e-3


def test_the_importance_of_on_policy_data_is_one_and_changes_nothing() -> None:
    plain = trainer()
    corrected = trainer(policy_loss=PolicyLossConfig(importance="token"))
    groups = two_groups(plain)

    first, second = plain.step(groups), corrected.step(groups)

    assert "policy/importance_mean" not in first
    assert second["policy/importance_mean"] == pytest.approx(1.0, abs=1e-4)
    assert second["policy/importance_capped"] == 0.0
    assert second["train/grad_norm"] == pytest.approx(first["train/grad_norm"], rel=1e-3)


@pytest.mark.parametrize("importance", ["token", "sequence"])
def test_stale_data_are_reweighted_and_the_clip_stays_centred(importance: Any) -> None:
    made = trainer(policy_loss=PolicyLossConfig(importance=importance, importance_cap=1.5))
    groups = two_groups(made)
    for parameter in made.parameters.values():
        parameter.data.mul_(1.3)

    metrics = made.step(groups)

    assert metrics["policy/clip_fraction"] == 0.0
    assert metrics["policy/ratio_max_error"] == 0.0
    assert metrics["policy/kl_sampler"] > 1e-3
    assert 0 <= metrics["policy/importance_capped"] < 1
    assert abs(metrics["policy/importance_mean"] - 1) > 0.05


def test_the_gradient_of_stale_data_is_that_of_plain_passes() -> None:
    config = PolicyLossConfig(importance="sequence", importance_cap=3.0)
    made = trainer(policy_loss=config, tokens_at_once=12)
    items = [*plan_step(two_groups(made), made.settings, made.model).items, two_turns()]
    for parameter in made.parameters.values():
        parameter.data.mul_(1.3)

    made.accumulate(items)

    wanted = plain_gradient(made, items)
    assert max(close(p.grad, wanted[n]) for n, p in made.parameters.items() if p.grad is not None) < 1e-4


def test_later_epochs_are_compared_with_the_weights_at_the_start_of_the_step() -> None:
    made = trainer(epochs=2, learning_rate=0.01, policy_loss=PolicyLossConfig(importance="token"))

    metrics = made.step(two_groups(made))

    assert metrics["policy/ratio_max_error"] > 1e-2
    assert metrics["policy/importance_mean"] == pytest.approx(1.0, abs=1e-3)


@pytest.mark.parametrize("tokens_at_once", [12, 100_000])
def test_checkpointing_changes_the_memory_and_not_the_gradient(tokens_at_once: int) -> None:
    plain, lean = trainer(), trainer(gradient_checkpointing=True, tokens_at_once=tokens_at_once)
    items = [*plan_step(two_groups(plain), plain.settings, plain.model).items, two_turns()]
    calls: Counter[str] = Counter()
    core = lean.model.core
    core.register_forward_hook(lambda *_: calls.update(["pass"]))
    core.layers[0].input_layernorm.register_forward_hook(lambda *_: calls.update(["layer"]))

    plain.accumulate(items)
    lean.accumulate(items)

    assert calls["layer"] == 2 * calls["pass"] > 0
    pairs = [(p.grad, plain.parameters[n].grad) for n, p in lean.parameters.items()]
    assert max(close(a, b) for a, b in pairs if a is not None and b is not None) < 1e-5
    assert not any(m.training for m in lean.model.network.modules())


def test_a_bf16_base_trains_float32_adapters_near_the_float32_gradient() -> None:
    exact = LoraTrainer(tiny_model(), TrainerSettings(lora=SMALL), seed=0)
    network = tiny_network().to(torch.bfloat16)
    half = LoraTrainer(wrap("tiny", network, exact.model.tokenizer), TrainerSettings(lora=SMALL), seed=0)
    items = [two_turns(), *plan_step(two_groups(exact), exact.settings, exact.model).items]

    exact.accumulate(items)
    half.accumulate(items)
    ours = torch.cat([p.grad.flatten() for p in half.parameters.values() if p.grad is not None])
    wanted = torch.cat([p.grad.flatten() for p in exact.parameters.values() if p.grad is not None])
    half.optimizer.step()

    assert {p.dtype for p in half.parameters.values()} == {torch.float32}
    assert {m.dtype for s in half.optimizer.state.values() for m in s.values()} == {torch.float32}
    assert float(torch.cosine_similarity(ours, wanted, dim=0)) > 0.99


def test_epochs_are_optimizer_steps_on_the_same_groups() -> None:
    made = trainer(epochs=3)

    made.step(two_groups(made))

    assert {int(state["step"]) for state in made.optimizer.state.values()} == {3}


def test_settings_of_one_step_replace_the_learning_rate() -> None:
    made = trainer()

    made.step(two_groups(made), made.settings.model_copy(update={"learning_rate": 0.5}))

    assert made.optimizer.param_groups[0]["lr"] == 0.5


def test_a_gradient_that_is_not_finite_moves_nothing_and_is_reported() -> None:
    made = trainer()
    groups = two_groups(made)
    groups[0].trajectories[0].messages_and_choices[-1].logprobs.content[0].logprob = math.nan
    before = {name: p.clone() for name, p in made.parameters.items()}

    metrics = made.step(groups)

    assert metrics["train/updated"] == 0.0
    assert all(torch.equal(p, before[n]) for n, p in made.parameters.items())


def test_an_unknown_advantage_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match=r"'grpo' is not an advantage.*floored"):
        TrainerSettings(advantage="grpo")


def test_the_policy_learns_to_say_a_token_that_is_rewarded() -> None:
    made = trainer(moved=False, learning_rate=0.02, lora=LoraSettings(rank=8, alpha=16))
    means = []
    for step in range(15):
        trajectories = sampled_trajectories(made.model, [0.0] * 24, temperature=1.0, max_tokens=6, seed=step)
        for trajectory in trajectories:
            trajectory.reward = trajectory.messages_and_choices[-1].token_ids.count(REWARDED) / 6
        means.append(made.step([TrajectoryGroup(trajectories)])["reward/mean"])

    assert max(means[:2]) < 0.1
    assert min(means[-3:]) > 0.8
