"""One GRPO update: prompts computed once per group, against full sequences.

    python benchmarks/grpo_step.py --against plain [--quick]

Both sides update the same LoRA adapter of the same model from the same tokens with the same clipped
loss. `plain` runs prompt + completion of every answer through the model, batch of 8, sends only
completion positions through the output layer, and calls backward once. Runs alternate; the first of
each side is not counted. Times are CPU seconds of the process.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from typing import Any

import torch
from _machine import publish, spread

from groundrule.algorithms.policy_loss import PolicyLossConfig, token_losses, token_weights
from groundrule.algorithms.sequences import TokenSequence
from groundrule.models.load import LanguageModel, load_model
from groundrule.training.batch import TrainingItem
from groundrule.training.lora_trainer import LoraTrainer

SHAPES = [(96, 8, 48), (512, 8, 64)]
"""Prompt tokens, answers, completion tokens."""


def items(model: LanguageModel, prompt: int, answers: int, tokens: int) -> list[TrainingItem]:
    """Random tokens with advantages of both signs; old logprobs are the model's own, as on-policy."""
    rng = random.Random(0)
    draw = lambda n: tuple(rng.randrange(100, model.network.config.vocab_size) for _ in range(n))  # noqa: E731
    shared = draw(prompt)
    return [
        TrainingItem(
            TokenSequence(shared, draw(tokens), (True,) * tokens, (-10.0,) * tokens),
            advantage=1.0 if i % 2 else -1.0,
            has_logprobs=False,
        )
        for i in range(answers)
    ]


def ours(trainer: LoraTrainer, batch: list[TrainingItem]) -> float:
    trainer.optimizer.zero_grad(set_to_none=True)
    loss = trainer.accumulate(batch).loss
    trainer.optimizer.step()
    return loss


def plain(trainer: LoraTrainer, batch: list[TrainingItem]) -> float:
    model = trainer.model
    trainer.optimizer.zero_grad(set_to_none=True)
    ids = torch.tensor([[*i.sequence.prompt_ids, *i.sequence.ids] for i in batch])
    length = len(batch[0].sequence.ids)
    logits = model.network(input_ids=ids, use_cache=False, logits_to_keep=length + 1).logits[:, :-1]
    new = torch.log_softmax(logits.float(), -1).gather(-1, ids[:, -length:, None])[..., 0]
    config = PolicyLossConfig()
    weights = token_weights([length] * len(batch), config)
    loss = torch.zeros(())
    for row, item, weight in zip(new, batch, weights, strict=True):
        loss = loss + weight * token_losses(row, row.detach(), item.advantage, config).sum()
    loss.backward()
    trainer.optimizer.step()
    return float(loss.detach())


def cpu_seconds(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--against", choices=["plain"], default="plain")
    parser.add_argument("--quick", action="store_true", help="two counted runs a side instead of five")
    runs = 2 if parser.parse_args().quick else 5
    trainer = LoraTrainer(load_model("smollm2-135m", device="cpu"))
    cases = []
    for prompt, answers, tokens in SHAPES:
        batch = items(trainer.model, prompt, answers, tokens)
        times: dict[str, list[float]] = {"ours": [], "plain": []}
        for _ in range(runs + 1):
            times["ours"].append(cpu_seconds(lambda batch=batch: ours(trainer, batch)))
            times["plain"].append(cpu_seconds(lambda batch=batch: plain(trainer, batch)))
        found = {side: spread(seconds[1:]) for side, seconds in times.items()}
        ratio = found["plain"]["median"] / found["ours"]["median"]
        shape = {"prompt": prompt, "answers": answers, "tokens": tokens}
        cases.append({**shape, **found, "ratio": round(ratio, 2)})
        print(
            f"prompt {prompt}, {answers} x {tokens}: ours {found['ours']}, plain {found['plain']}, {ratio:.2f}x"
        )
    publish(
        "grpo_step_plain",
        {
            "unit": "CPU seconds per update, median of several",
            "runs": runs,
            "ours": cases[-1]["ours"]["median"],
            "theirs": cases[-1]["plain"]["median"],
            "ratio": cases[-1]["ratio"],
            "cases": cases,
        },
    )


if __name__ == "__main__":
    main()
