"""One GRPO update per line by our trainer: `python _our_update.py BATCH.json`, see `grpo_step.py`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from _child import serve

from groundrule.algorithms.sequences import TokenSequence
from groundrule.models.load import load_model
from groundrule.models.lora import LoraSettings, adapter_state
from groundrule.training.batch import TrainingItem
from groundrule.training.lora_trainer import LoraTrainer, TrainerSettings


def items_of(batch: dict[str, Any]) -> list[TrainingItem]:
    """The batch as the trainer takes it; old logprobs are the model's own, as on-policy."""
    prompt = tuple(batch["prompt"])
    return [
        TrainingItem(
            TokenSequence(prompt, tuple(ids), (True,) * len(ids), (0.0,) * len(ids)),
            advantage,
            has_logprobs=False,
        )
        for ids, advantage in zip(batch["completions"], batch["advantages"], strict=True)
    ]


def moved_trainer(settings: TrainerSettings) -> LoraTrainer:
    """A trainer whose adapter is not the zero that it starts as, so that every weight has a gradient."""
    trainer = LoraTrainer(load_model("smollm2-135m", device="cpu"), settings)
    random = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in trainer.parameters.items():
            if "lora_B" in name:
                parameter.normal_(std=0.01, generator=random)
    return trainer


def load() -> Callable[[], dict[str, float]]:
    from safetensors.torch import save_file

    batch = json.loads(Path(sys.argv[1]).read_text())
    settings = TrainerSettings(
        learning_rate=batch["learning_rate"],
        lora=LoraSettings(**batch["lora"]),
        gradient_checkpointing=batch["gradient_checkpointing"],
    )
    trainer, items = moved_trainer(settings), items_of(batch)
    save_file(adapter_state(trainer.model), batch["adapter"])

    def update() -> dict[str, float]:
        sums = trainer.accumulate(items)
        norm = torch.nn.utils.clip_grad_norm_(list(trainer.parameters.values()), settings.max_grad_norm)
        trainer.optimizer.step()
        trainer.optimizer.zero_grad(set_to_none=True)
        return {"loss": sums.loss, "grad_norm": float(norm)}

    return update


if __name__ == "__main__":
    serve(load)
