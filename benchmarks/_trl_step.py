"""Whole training steps by TRL's trainer, in TRL's own environment, one per line: `python _trl_step.py BATCH.json`.

What is timed: for each group a batch from the trainer's dataloader and `GRPOTrainer.training_step` (the first of them
generates all answers together, asks the reward function and computes the advantages in `_prepare_inputs`; each does
loss and backward), then clipping, the optimizer's step and `zero_grad`. One batch of all answers at once, without
accumulation, needs more than 20 GB here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from _child import serve
from _rewards import letters
from _trl_trainer import made, optimizer_step
from trl import GRPOTrainer


def trainer_of(batch: dict[str, Any]) -> GRPOTrainer:
    return made(
        batch,
        reward=lambda completions, **_: [letters(c[0]["content"]) for c in completions],
        prompts=batch["conversations"],
        gradient_checkpointing=False,
        per_device_train_batch_size=batch["answers"],
        gradient_accumulation_steps=batch["groups"],
        num_generations=batch["answers"],
        max_completion_length=batch["tokens"],
        generation_kwargs={"min_new_tokens": batch["tokens"]},
        temperature=batch["temperature"],
    )


def endlessly(trainer: GRPOTrainer) -> Iterator[Any]:
    while True:
        yield from trainer.get_train_dataloader()


def load() -> Callable[[], dict[str, float]]:
    batch = json.loads(Path(sys.argv[1]).read_text())
    trainer = trainer_of(batch)
    batches = endlessly(trainer)

    def step() -> dict[str, float]:
        for _ in range(batch["groups"]):
            trainer.training_step(trainer.model, next(batches), None)
        norm = optimizer_step(trainer)
        trainer.state.global_step += 1
        return {"grad_norm": norm}

    return step


if __name__ == "__main__":
    serve(load)
