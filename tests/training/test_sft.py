"""Supervised fine-tuning: what is trained on, that it is exact, and that it learns."""

from __future__ import annotations

import pytest
import torch

from groundrule.data.trajectory import Trajectory
from groundrule.errors import TrainingError
from groundrule.models.lora import LoraSettings
from groundrule.training.sft import SftSettings, SftTrainer
from tiny import close, full_logprobs, tiny_model

SMALL = LoraSettings(rank=4, alpha=8)


def example(question: str, *answers: str) -> Trajectory:
    messages = [{"role": "system", "content": "Be brief."}]
    for answer in answers:
        messages += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return Trajectory(messages_and_choices=messages)


EXAMPLES = [example("Dogs?", "Yes."), example("Dogs?", "Yes, on a lead."), example("Parking?", "Behind us.")]


def trainer(**settings: object) -> SftTrainer:
    return SftTrainer(tiny_model(), SftSettings(lora=SMALL, **settings), seed=0)  # type: ignore[arg-type]


def plain_loss(made: SftTrainer, examples: list[Trajectory]) -> torch.Tensor:
    """The same by one plain pass for each turn."""
    rows = []
    for given in examples:
        for [turn] in made.model.renderer.turns(given):
            rows.append(full_logprobs(made.model.network, turn.prompt_ids, turn.answer_ids))
    return -torch.cat(rows).mean()


def test_the_loss_is_the_mean_over_the_tokens_of_answers() -> None:
    made = trainer()

    with torch.inference_mode():
        wanted = float(plain_loss(made, EXAMPLES))
    assert made.loss(EXAMPLES) == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("tokens_at_once", [8, 4096])
def test_a_step_moves_the_adapter_along_the_gradient_of_the_plain_loss(tokens_at_once: int) -> None:
    made = trainer(tokens_at_once=tokens_at_once, max_grad_norm=1e9)
    plain_loss(made, EXAMPLES).backward()  # type: ignore[no-untyped-call]
    wanted = {name: p.grad.clone() for name, p in made.parameters.items() if p.grad is not None}
    found = {}

    def kept() -> None:
        found.update({name: p.grad.clone() for name, p in made.parameters.items() if p.grad is not None})

    made.optimizer.step = kept  # type: ignore[assignment]
    list(made.fit(EXAMPLES))

    assert max(close(found[name], wanted[name]) for name in wanted) < 1e-4


def test_answers_that_are_shown_become_likelier() -> None:
    made = trainer(epochs=40, learning_rate=0.02)
    before = made.loss(EXAMPLES)

    list(made.fit(EXAMPLES))

    assert made.loss(EXAMPLES) < before / 2


def test_every_example_is_seen_once_an_epoch() -> None:
    steps = trainer(examples_per_step=2, epochs=2).fit(EXAMPLES)

    first, second, third, fourth = (metrics["sft/tokens"] for metrics in steps)
    # Bytes of the three answers, and an end marker each.
    assert first + second == third + fourth == 5 + 16 + 11


def test_the_same_seed_gives_the_same_weights() -> None:
    first, second = trainer(examples_per_step=1), trainer(examples_per_step=1)
    for made in (first, second):
        list(made.fit(EXAMPLES))

    assert all(
        torch.equal(a, b) for a, b in zip(first.parameters.values(), second.parameters.values(), strict=True)
    )


def test_the_learning_rate_falls_along_a_line() -> None:
    made = trainer(examples_per_step=1, learning_rate=1.0)

    rates = [metrics["sft/learning_rate"] for metrics in made.fit(EXAMPLES)]

    assert rates == pytest.approx([1.0, 0.7, 0.4])


def test_what_examples_share_passes_through_the_model_once() -> None:
    made = trainer()
    alone = next(iter(trainer().fit(EXAMPLES[:1])))["sft/unique_tokens"]

    [metrics] = made.fit([EXAMPLES[0], EXAMPLES[0]])

    assert metrics["sft/unique_tokens"] == alone


def test_every_turn_of_a_conversation_is_trained_on() -> None:
    [one] = trainer().fit([example("Dogs?", "Yes.")])
    [two] = trainer().fit([example("Dogs?", "Yes.", "Still yes.")])

    assert one["sft/tokens"] == 5  # Four bytes and the end marker.
    assert two["sft/tokens"] == 5 + 11


def test_an_example_without_an_answer_is_refused_by_its_number() -> None:
    empty = Trajectory(messages_and_choices=[{"role": "user", "content": "Dogs?"}])

    with pytest.raises(TrainingError, match="example 1 has no assistant turn"):
        list(trainer().fit([EXAMPLES[0], empty]))
