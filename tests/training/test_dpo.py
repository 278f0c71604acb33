"""Direct preference optimisation: the exact loss and gradient, what is trained on, and that it learns."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import logsigmoid

from groundrule.data.answers import Answer
from groundrule.data.preferences import PreferencePair
from groundrule.errors import TrainingError
from groundrule.models.lora import LoraSettings
from groundrule.training.checkpoints import load_checkpoint, save_checkpoint
from groundrule.training.dpo import DpoSettings, DpoTrainer, dpo_metrics, dpo_objective, pair_batches
from groundrule.training.pair_batch import PairBatch, PairSums, pair_tokens
from tiny import close, full_logprobs, tiny_model

SYSTEM = {"role": "system", "content": "Be brief."}
ASK = {"role": "user", "content": "Sure?"}


def pair(question: str, chosen: str, rejected: str, **more: Any) -> PreferencePair:
    prompt = [SYSTEM, {"role": "user", "content": question}]
    return PreferencePair(prompt=prompt, chosen=chosen, rejected=rejected, **more)


PAIRS = [
    pair("Dogs?", "Yes.", "Yes, but why?"),
    pair("Dogs?", "On a lead.", "No.", certainty=0.8),
    pair("Parking?", "Behind us.", "Who knows?"),
]
LEARNT = [
    pair(q, f"{a}.", f"{a}?") for q, a in [("Dogs?", "Yes"), ("Cats?", "No"), ("Parking?", "Behind us")]
]
HELD_OUT = [pair("Bikes?", "Inside.", "Inside?"), pair("Tents?", "On the lawn.", "On the lawn?")]


def trainer(*, moved: bool = False, **settings: Any) -> DpoTrainer:
    """With `moved`, the adapter is away from where it begins, so that the policy is not the reference."""
    made = DpoTrainer(tiny_model(), DpoSettings(lora=LoraSettings(rank=4, alpha=8), **settings), seed=0)
    if moved:
        noise = torch.Generator().manual_seed(3)
        for parameter in made.parameters.values():
            parameter.data += 0.05 * torch.randn(parameter.shape, generator=noise)
    return made


def batch(made: DpoTrainer, pairs: list[PreferencePair]) -> PairBatch:
    return PairBatch(pair_tokens(pairs, made.model))


def gradient(made: DpoTrainer, pairs: list[PreferencePair]) -> dict[str, torch.Tensor]:
    made.accumulate(batch(made, pairs))
    return {name: p.grad.clone() for name, p in made.parameters.items() if p.grad is not None}


def plain_sum(made: DpoTrainer, given: PreferencePair, answer: Answer) -> torch.Tensor:
    """log p of the answer by one pass over the whole conversation."""
    prompt = made.model.renderer.prompt_ids(given.prompt)
    ids = [*made.model.tokenizer.encode(answer.text, add_special_tokens=False), 2]
    return full_logprobs(made.model.network, prompt, ids).sum()


def plain_gap(made: DpoTrainer, given: PreferencePair) -> torch.Tensor:
    """The implicit reward of the chosen answer less that of the rejected one, over beta."""
    policy = plain_sum(made, given, given.chosen) - plain_sum(made, given, given.rejected)
    with torch.no_grad(), made.model.base_only():
        reference = plain_sum(made, given, given.chosen) - plain_sum(made, given, given.rejected)
    return policy - reference


def plain_loss(made: DpoTrainer, pairs: list[PreferencePair]) -> torch.Tensor:
    """Pair by pair: -c log sigmoid(beta gap) - (1 - c) log sigmoid(-beta gap)."""
    gaps = [made.settings.beta * plain_gap(made, p) for p in pairs]
    losses = [
        -p.certainty * logsigmoid(g) - (1 - p.certainty) * logsigmoid(-g)
        for p, g in zip(pairs, gaps, strict=True)
    ]
    return torch.stack(losses).mean()


def looked_at(policy: list[list[float]], **more: Any) -> PairSums:
    """Answers of 2 and 4 tokens that the reference gives -5 nats each."""
    numbers = torch.tensor(policy, dtype=torch.float64)
    rows = {
        "reference": torch.full_like(numbers, -5.0),
        "squares": torch.zeros_like(numbers),
        "tokens": torch.tensor([[2.0, 4.0]], dtype=torch.float64).expand_as(numbers),
        "certainty": torch.ones(len(numbers), dtype=torch.float64),
        **more,
    }
    return PairSums(policy=numbers, **rows)


def test_the_loss_is_the_plain_one_of_each_pair() -> None:
    made = trainer(moved=True)

    with torch.inference_mode():
        wanted = plain_loss(made, PAIRS).item()
    assert made.evaluate(PAIRS)["dpo/loss"] == pytest.approx(wanted, abs=1e-5)
    assert next(made.fit(PAIRS))["dpo/loss"] == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("tokens_at_once", [8, 60, 4096])
def test_the_gradient_is_the_plain_one_however_the_tree_is_cut(tokens_at_once: int) -> None:
    made, plain = trainer(moved=True, tokens_at_once=tokens_at_once), trainer(moved=True)
    plain_loss(plain, PAIRS).backward()  # type: ignore[no-untyped-call]

    found = gradient(made, PAIRS)

    wanted = {name: p.grad for name, p in plain.parameters.items() if p.grad is not None}
    assert found.keys() == wanted.keys()
    assert max(close(found[name], wanted[name]) for name in wanted) < 1e-4


def test_the_gradient_is_that_of_finite_differences() -> None:
    made, noise = trainer(moved=True, sft_weight=0.5, label_smoothing=0.1), torch.Generator().manual_seed(1)
    slopes = gradient(made, PAIRS)
    ways = {name: torch.randn(p.shape, generator=noise) for name, p in made.parameters.items()}
    along = sum(float((slopes[name] * ways[name]).sum()) for name in slopes)

    losses = []
    for sign in (1, -2):
        for name, parameter in made.parameters.items():
            parameter.data += sign * 1e-3 * ways[name]
        losses.append(made.evaluate(PAIRS)["dpo/loss"])

    assert (losses[0] - losses[1]) / 2e-3 == pytest.approx(along, rel=0.01)


def test_the_order_of_the_pairs_does_not_change_the_gradient() -> None:
    first = gradient(trainer(moved=True), PAIRS)
    other = gradient(trainer(moved=True), PAIRS[::-1])

    assert max(close(other[name], first[name]) for name in first) < 1e-5


def test_numbers_over_all_pairs_do_not_depend_on_the_size_of_a_batch() -> None:
    one, all_at_once = (trainer(moved=True, pairs_per_step=size).evaluate(PAIRS) for size in (1, 3))

    assert one == pytest.approx(all_at_once, abs=1e-5)


def test_training_starts_at_the_loss_of_a_coin() -> None:
    metrics = next(trainer().fit(PAIRS))

    assert metrics["dpo/loss"] == pytest.approx(math.log(2), abs=1e-6)
    assert metrics["dpo/accuracy"] == 0.5
    for name in ("margin", "reward_chosen", "reward_rejected", "drift"):
        assert metrics[f"dpo/{name}"] == pytest.approx(0.0, abs=1e-6)


def test_a_step_tells_what_it_saw() -> None:
    [metrics] = trainer().fit(PAIRS)

    assert metrics["dpo/pairs"] == 3
    # Bytes of the six answers, and an end marker each.
    assert metrics["dpo/tokens"] == 4 + 13 + 10 + 3 + 10 + 10 + 6
    assert metrics["dpo/unique_tokens"] < metrics["dpo/all_tokens"]
    assert metrics["dpo/grad_norm"] > 0
    assert metrics["dpo/updated"] == 1


def test_the_numbers_of_known_log_probabilities() -> None:
    pairs = looked_at([[-4.0, -8.0], [-6.0, -5.0]], squares=torch.tensor([[1.0, 9.0], [1.0, 1.0]]))

    metrics = dpo_metrics(pairs, DpoSettings(beta=0.5))

    # Margins of 0.5 x 4 and 0.5 x -1.
    assert metrics["dpo/loss"] == pytest.approx((0.126928 + 0.974077) / 2, abs=1e-6)
    assert metrics["dpo/accuracy"] == 0.5
    assert metrics["dpo/margin"] == pytest.approx(0.75)
    assert metrics["dpo/reward_chosen"] == pytest.approx(0.0)
    assert metrics["dpo/reward_rejected"] == pytest.approx(-0.75)
    assert metrics["dpo/drift"] == pytest.approx(12 / 12 / 2)
    assert metrics["dpo/chosen_loss"] == pytest.approx((2 + 3) / 2)


@pytest.mark.parametrize(
    ("settings", "certainty", "expected"),
    [
        ({}, 1.0, 0.313262),
        ({"label_smoothing": 0.1}, 1.0, 0.413262),
        ({}, 0.9, 0.413262),
        ({"label_smoothing": 0.1}, 0.9, 0.493262),
        ({"sft_weight": 0.5}, 1.0, 1.313262),
    ],
)
def test_golden_losses_at_a_margin_of_one(
    settings: dict[str, float], certainty: float, expected: float
) -> None:
    pairs = looked_at([[-4.0, -5.0]], certainty=torch.tensor([certainty], dtype=torch.float64))

    assert dpo_objective(pairs, DpoSettings(beta=1.0, **settings)).item() == pytest.approx(expected, abs=1e-6)


def test_a_doubtful_pair_pulls_less() -> None:
    norms = [
        next(trainer().fit([pair("Dogs?", "Yes.", "No.", certainty=c)]))["dpo/grad_norm"]
        for c in (1.0, 0.9, 0.6)
    ]

    # At the start the pull is beta (c - 1/2).
    assert norms[1] / norms[0] == pytest.approx(0.8, abs=1e-4)
    assert norms[2] / norms[0] == pytest.approx(0.2, abs=1e-4)


def test_a_doubtful_pair_is_pushed_apart_no_further_than_its_odds() -> None:
    made = trainer(epochs=60, learning_rate=0.02)

    last = [m["dpo/margin"] for m in made.fit([pair("Dogs?", "Yes.", "No.", certainty=0.8)])][-1]

    assert last == pytest.approx(math.log(4), abs=0.05)


def test_a_rule_is_learnt_and_holds_on_other_prompts() -> None:
    made = trainer(epochs=30, learning_rate=0.01)

    steps = list(made.fit(LEARNT))

    assert steps[-1]["dpo/accuracy"] == 1.0
    assert steps[-1]["dpo/loss"] < 0.2
    assert steps[-1]["dpo/drift"] > 0
    assert made.evaluate(HELD_OUT)["dpo/accuracy"] == 1.0


def test_the_term_of_imitation_keeps_the_chosen_answer_likely() -> None:
    without, with_it = (trainer(epochs=30, learning_rate=0.01, sft_weight=weight) for weight in (0.0, 1.0))
    before = without.evaluate(LEARNT)["dpo/chosen_loss"]
    for made in (without, with_it):
        list(made.fit(LEARNT))

    assert with_it.evaluate(LEARNT)["dpo/chosen_loss"] < before / 2
    assert with_it.evaluate(LEARNT)["dpo/chosen_loss"] < without.evaluate(LEARNT)["dpo/chosen_loss"]


def test_the_learning_rate_falls_along_a_line() -> None:
    steps = trainer(pairs_per_step=1, learning_rate=1e-3).fit(PAIRS)

    assert [m["dpo/learning_rate"] for m in steps] == pytest.approx([1e-3, 7e-4, 4e-4])


def test_looking_at_pairs_does_not_move_the_weights() -> None:
    made = trainer(moved=True)
    before = {name: p.detach().clone() for name, p in made.parameters.items()}

    made.evaluate(PAIRS)

    assert all(torch.equal(p, before[name]) and p.grad is None for name, p in made.parameters.items())


def test_a_resumed_training_ends_where_an_unbroken_one_does(tmp_path: Path) -> None:
    whole, first, second = (trainer(pairs_per_step=1, epochs=2) for _ in range(3))
    list(whole.fit(PAIRS))
    steps = first.fit(PAIRS)
    for _ in range(4):
        next(steps)
    save_checkpoint(first, tmp_path / "c", step=4)

    done = load_checkpoint(second, tmp_path / "c")["step"]
    rest = list(second.fit(PAIRS, done=done))

    assert len(rest) == 2
    assert all(torch.equal(p, whole.parameters[name]) for name, p in second.parameters.items())


def test_no_pairs_are_refused() -> None:
    with pytest.raises(TrainingError, match="there are no preference pairs"):
        trainer().fit([])
    with pytest.raises(TrainingError, match="there are no preference pairs"):
        trainer().evaluate([])


def test_what_the_agent_said_in_the_prompt_does_not_count() -> None:
    said = [{"role": "user", "content": "Dogs?"}, {"role": "assistant", "content": "Yes, of course."}]
    [metrics] = trainer().fit([PreferencePair(prompt=[SYSTEM, *said, ASK], chosen="Yes.", rejected="No.")])

    assert metrics["dpo/tokens"] == 5 + 4


def test_damaged_weights_are_an_error_that_names_pair_and_side() -> None:
    made = trainer()
    next(iter(made.parameters.values())).data.fill_(math.nan)

    with pytest.raises(
        TrainingError, match="pair 0: the policy gives the chosen answer the log-probability nan"
    ):
        next(made.fit(PAIRS[:1]))


def test_a_gradient_that_is_not_finite_leaves_the_weights_alone(caplog: pytest.LogCaptureFixture) -> None:
    made = trainer(moved=True)
    before = {name: p.detach().clone() for name, p in made.parameters.items()}
    next(iter(made.parameters.values())).register_hook(lambda slope: slope * math.inf)

    [metrics] = made.fit(PAIRS)

    assert metrics["dpo/updated"] == 0
    assert "not finite" in caplog.text
    assert all(torch.equal(p, before[name]) for name, p in made.parameters.items())


def test_steps_of_whole_prompts_hold_all_their_pairs() -> None:
    steps = pair_batches(PAIRS, DpoSettings(prompts_per_step=1, epochs=2), seed=0)

    assert sorted(map(sorted, steps)) == [[0, 1], [0, 1], [2], [2]]


def test_steps_of_two_prompts_hold_every_pair_once_an_epoch() -> None:
    [step] = pair_batches(PAIRS, DpoSettings(prompts_per_step=2), seed=0)

    assert sorted(step) == [0, 1, 2]
