"""TRL's GRPOTrainer as every comparison uses it; runs in TRL's own environment."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

os.environ.update(HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="", TRL_EXPERIMENTAL_SILENCE="1")

import torch
from datasets import Dataset
from peft import LoraConfig, set_peft_model_state_dict
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOConfig, GRPOTrainer


def made(
    batch: dict[str, Any], *, reward: Callable[..., list[float]], prompts: Sequence[Any], **settings: Any
) -> GRPOTrainer:
    """TRL's trainer with our model, adapter and optimizer; what `settings` do not say is its default."""
    config = GRPOConfig(
        output_dir=tempfile.mkdtemp(),
        use_cpu=True,
        bf16=False,
        learning_rate=batch["learning_rate"],
        adam_beta2=0.99,
        epsilon_high=0.28,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        dataloader_pin_memory=False,
        **settings,
    )
    trainer = GRPOTrainer(
        model=AutoModelForCausalLM.from_pretrained(batch["model"], dtype=torch.float32),
        reward_funcs=[reward],
        args=config,
        train_dataset=Dataset.from_list([{"prompt": prompt} for prompt in prompts]),
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
    trainer.current_gradient_accumulation_steps = config.gradient_accumulation_steps
    return trainer


def load_adapter(trainer: GRPOTrainer, path: str) -> None:
    """Put the weights that our side wrote into the adapter."""
    set_peft_model_state_dict(trainer.model, load_file(path))


def optimizer_step(trainer: GRPOTrainer) -> float:
    """Clip, step and clear, as its training loop does; the norm of the gradient."""
    norm = trainer.accelerator.clip_grad_norm_(trainer.model.parameters(), trainer.args.max_grad_norm)
    trainer.optimizer.step()
    trainer.model.zero_grad()
    return float(norm)
