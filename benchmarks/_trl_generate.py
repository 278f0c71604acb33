"""Generation by TRL's trainer, in TRL's own environment, once per line: `python _trl_generate.py BATCH.json`.

What is timed: `GRPOTrainer._generate_single_turn`, which pads the prompts to the left, calls transformers'
`generate` on the model with its unmerged adapter, and cuts the answers out. `first_*` is the same for one token
each: reading the prompts.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _child import serve, timed
from _trl_trainer import load_adapter, made


def load() -> Callable[[], dict[str, float]]:
    batch = json.loads(Path(sys.argv[1]).read_text())
    prompts = [p for p in batch["prompts"] for _ in range(batch["answers"])]
    trainer = made(
        batch,
        reward=lambda completions, **_: [0.0] * len(completions),
        prompts=["never read"] * len(prompts),
        gradient_checkpointing=False,
        per_device_train_batch_size=len(prompts),
        num_generations=batch["answers"],
        max_completion_length=batch["tokens"],
    )
    load_adapter(trainer, batch["adapter"])

    def generate(tokens: int) -> None:
        for settings in (trainer.generation_config, trainer.model.generation_config):
            settings.max_new_tokens = settings.min_new_tokens = tokens
        trainer.generation_kwargs.update(max_new_tokens=tokens, min_new_tokens=tokens)
        found = trainer._generate_single_turn(prompts, None, {}, batch["answers"])
        lengths = {len(ids) for ids in found[0]}
        if lengths != {tokens}:
            raise RuntimeError(f"answers of {lengths} tokens, {tokens} were asked for")

    def work() -> dict[str, Any]:
        return {**timed("first", lambda: generate(1)), **timed("whole", lambda: generate(batch["tokens"]))}

    return work


if __name__ == "__main__":
    serve(load)
