"""One GRPO update per line the plain way, every sequence whole: `python _plain_update.py BATCH.json`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import torch
from _child import serve
from _our_update import moved_trainer

from groundrule.algorithms.policy_loss import token_losses, token_weights
from groundrule.models.lora import LoraSettings
from groundrule.training.lora_trainer import TrainerSettings


def load() -> Callable[[], dict[str, float]]:
    batch = json.loads(Path(sys.argv[1]).read_text())
    settings = TrainerSettings(learning_rate=batch["learning_rate"], lora=LoraSettings(**batch["lora"]))
    trainer = moved_trainer(settings)
    network, config = trainer.model.network, settings.policy_loss
    trainer.model.causal_lm.set_attn_implementation("sdpa")
    ids = torch.tensor([[*batch["prompt"], *completion] for completion in batch["completions"]])
    length = len(batch["completions"][0])
    weights = token_weights([length] * len(ids), config)

    def update() -> dict[str, float]:
        logits = network(input_ids=ids, use_cache=False, logits_to_keep=length + 1).logits[:, :-1]
        new = torch.log_softmax(logits.float(), -1).gather(-1, ids[:, -length:, None])[..., 0]
        loss = torch.zeros(())
        for row, advantage, weight in zip(new, batch["advantages"], weights, strict=True):
            loss = loss + weight * token_losses(row, row.detach(), advantage, config).sum()
        loss.backward()
        norm = torch.nn.utils.clip_grad_norm_(list(trainer.parameters.values()), settings.max_grad_norm)
        trainer.optimizer.step()
        trainer.optimizer.zero_grad(set_to_none=True)
        return {"loss": float(loss.detach()), "grad_norm": float(norm)}

    return update


if __name__ == "__main__":
    serve(load)
