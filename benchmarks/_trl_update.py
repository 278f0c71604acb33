"""One GRPO update per line by TRL's trainer, in TRL's own environment: `python _trl_update.py BATCH.json`.

What is timed: `GRPOTrainer.training_step` (its `compute_loss` and `accelerator.backward`), clipping by
`accelerator.clip_grad_norm_`, the step of the optimizer that `create_optimizer` made, and `zero_grad`. Generating
and scoring are left out: `_prepare_inputs`, which does both, is replaced by one that hands over a prepared batch
in the form in which TRL buffers it. `old_per_token_logps` is absent, as TRL leaves it on-policy with one
iteration, so that the ratio's denominator is the detached numerator.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="", TRL_EXPERIMENTAL_SILENCE="1")

import torch
from _child import serve
from datasets import Dataset
from peft import LoraConfig, set_peft_model_state_dict
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer


def made(batch: dict[str, Any]) -> GRPOTrainer:
    """TRL's trainer with our model, adapter and settings; everything else is its default."""
    answers = len(batch["completions"])
    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=batch["gradient_checkpointing"],
        per_device_train_batch_size=answers,
        num_generations=batch.get("generations", answers),
        max_completion_length=len(batch["completions"][0]),
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
        reward_funcs=[lambda completions, **_: [0.0] * len(completions)],
        args=config,
        train_dataset=Dataset.from_list([{"prompt": "never read"}] * answers),
        processing_class=AutoTokenizer.from_pretrained(batch["model"]),
        peft_config=LoraConfig(
            r=batch["lora"]["rank"],
            lora_alpha=batch["lora"]["alpha"],
            target_modules=batch["lora"]["targets"],
            lora_dropout=0.0,
            task_type="CAUSAL_LM",
        ),
    )
    set_peft_model_state_dict(trainer.model, load_file(batch["adapter"]))
    trainer.create_optimizer()
    if batch["gradient_checkpointing"]:  # As `Trainer.train` does before its first step.
        trainer.model.activation_checkpointing_enable()
    trainer.current_gradient_accumulation_steps = 1
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
    trainer, inputs = made(batch), tensors_of(batch)

    def update() -> dict[str, float]:
        loss = trainer.training_step(trainer.model, dict(inputs), None)
        norm = trainer.accelerator.clip_grad_norm_(trainer.model.parameters(), trainer.args.max_grad_norm)
        trainer.optimizer.step()
        trainer.model.zero_grad()
        return {"loss": float(loss), "grad_norm": float(norm)}

    return update


if __name__ == "__main__":
    serve(load)
