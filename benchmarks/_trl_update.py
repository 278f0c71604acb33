"""One GRPO update per line by TRL's trainer, in TRL's own environment: `python _trl_update.py BATCH.json`.

What is timed: `GRPOTrainer.training_step` (its `compute_loss` and `accelerator.backward`), clipping by
`accelerator.clip_grad_norm_`, the step of the optimizer that `create_optimizer` made, and `zero_grad`. Generating
and scoring are left out: `_prepare_inputs`, which does both, is replaced by one that hands over a prepared batch
in the form in which TRL buffers it. `old_per_token_logps` is absent, as TRL leaves it on-policy with one
iteration, so that the ratio's denominator is the detached numerator.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from _child import serve
from _trl_trainer import load_adapter, made, optimizer_step
from trl import GRPOTrainer


def trainer_of(batch: dict[str, Any]) -> GRPOTrainer:
    """A trainer that takes the prepared batch as it is."""
    answers = len(batch["completions"])
    trainer = made(
        batch,
        reward=lambda completions, **_: [0.0] * len(completions),
        prompts=["never read"] * answers,
        gradient_checkpointing=batch["gradient_checkpointing"],
        per_device_train_batch_size=answers,
        num_generations=answers,
        max_completion_length=len(batch["completions"][0]),
    )
    load_adapter(trainer, batch["adapter"])
    if batch["gradient_checkpointing"]:  # As `Trainer.train` does before its first step.
        trainer.model.activation_checkpointing_enable()
    trainer._prepare_inputs = lambda inputs: inputs
    return trainer


def tensors_of(batch: dict[str, Any]) -> dict[str, torch.Tensor]:
    """What `_generate_and_score_completions` would have returned; nothing is padded, as all are equally long."""
    completions = torch.tensor(batch["completions"])
    prompts = torch.tensor([batch["prompt"]] * len(completions))
    return {
        "prompt_ids": prompts,
        "prompt_mask": torch.ones_like(prompts),
        "completion_ids": completions,
        "completion_mask": torch.ones_like(completions),
        "advantages": torch.tensor(batch["advantages"]),
        "num_items_in_batch": torch.tensor(completions.numel()),
    }


def load() -> Callable[[], dict[str, float]]:
    batch = json.loads(Path(sys.argv[1]).read_text())
    trainer, inputs = trainer_of(batch), tensors_of(batch)

    def update() -> dict[str, float]:
        loss = trainer.training_step(trainer.model, dict(inputs), None)
        return {"loss": float(loss), "grad_norm": optimizer_step(trainer)}

    return update


if __name__ == "__main__":
    serve(load)
