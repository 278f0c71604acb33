"""Whole training steps by TRL's trainer, in TRL's own environment, one per line: `python _trl_step.py BATCH.json`.

What is timed: for each group a batch from the trainer's dataloader and `GRPOTrainer.training_step` (the first of them
generates all answers together, asks the reward function and computes the advantages in `_prepare_inputs`; each does
loss and backward), then clipping, the optimizer's step and `zero_grad`. One batch of all answers at once, without
accumulation, needs more than 20 GB here.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="", TRL_EXPERIMENTAL_SILENCE="1")

import torch
from _child import serve
from _rewards import letters
from datasets import Dataset
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer


def made(batch: dict[str, Any]) -> GRPOTrainer:
    answers, tokens = batch["answers"], batch["tokens"]
    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        per_device_train_batch_size=answers,
        gradient_accumulation_steps=batch["groups"],
        num_generations=answers,
        max_completion_length=tokens,
        generation_kwargs={"min_new_tokens": tokens},
        temperature=batch["temperature"],
        learning_rate=batch["learning_rate"],
        adam_beta2=0.99,
        epsilon_high=0.28,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
    )
    trainer = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(batch["model"], dtype=torch.float32),
        reward_funcs=[lambda completions, **_: [letters(c[0]["content"]) for c in completions]],
        args=config,
        train_dataset=Dataset.from_list([{"prompt": messages} for messages in batch["conversations"]]),
        processing_class=AutoTokenizer.from_pretrained(batch["model"]),
        peft_config=LoraConfig(
            r=batch["lora"]["rank"],
            lora_alpha=batch["lora"]["alpha"],
            target_modules=batch["lora"]["targets"],
            lora_dropout=0.0,
            task_type="CAUSAL_LM",
        ),
    )
    trainer.create_optimizer()
    trainer.current_gradient_accumulation_steps = batch["groups"]
    return trainer


def endlessly(trainer: GRPOTrainer) -> Iterator[Any]:
    while True:
        yield from trainer.get_train_dataloader()


def load() -> Callable[[], dict[str, float]]:
    batch = json.loads(Path(sys.argv[1]).read_text())
    trainer = made(batch)
    batches = endlessly(trainer)

    def step() -> dict[str, float]:
        for _ in range(batch["groups"]):
            trainer.training_step(trainer.model, next(batches), None)
        norm = trainer.accelerator.clip_grad_norm_(trainer.model.parameters(), trainer.args.max_grad_norm)
        trainer.optimizer.step()
        trainer.model.zero_grad()
        trainer.state.global_step += 1
        return {"grad_norm": float(norm)}

    return step


if __name__ == "__main__":
    serve(load)
