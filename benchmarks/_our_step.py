"""Whole training steps by our own backend, one per line: `python _our_step.py BATCH.json`.

What is timed is what a user's program does: rollouts that ask the local endpoint over HTTP with OpenAI's client,
gather, a reward in `after_each`, and `model.train`, which updates, writes a checkpoint and the step's record, and
publishes the new weights to the endpoint.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _child import serve
from _rewards import letters

import groundrule as art
from groundrule.models.lora import LoraSettings
from groundrule.training.lora_trainer import TrainerSettings


async def answered(model: art.TrainableModel, batch: dict[str, Any], messages: list[Any]) -> art.Trajectory:
    completion = await model.openai_client().chat.completions.create(
        model=model.get_inference_name(),
        messages=messages,
        temperature=batch["temperature"],
        max_tokens=batch["tokens"],
    )
    [choice] = completion.choices
    return art.Trajectory(
        messages_and_choices=[*messages, choice], reward=letters(choice.message.content or "")
    )


async def step(model: art.TrainableModel, batch: dict[str, Any], number: int) -> dict[str, float]:
    count, conversations = batch["groups"], batch["conversations"]
    chosen = [conversations[(number * count + i) % len(conversations)] for i in range(count)]
    groups = await art.gather_trajectory_groups(
        (
            art.TrajectoryGroup(answered(model, batch, messages) for _ in range(batch["answers"]))
            for messages in chosen
        ),
        pbar_desc=None,
    )
    result = await model.train(groups, art.TrainConfig(learning_rate=batch["learning_rate"]))
    return {name: float(result.metrics[name] or 0) for name in ("train/answer_tokens", "train/prompt_tokens")}


def load() -> Callable[[], dict[str, float]]:
    batch = json.loads(Path(sys.argv[1]).read_text())
    loop = asyncio.new_event_loop()
    settings = TrainerSettings(lora=LoraSettings(**batch["lora"]))
    backend = art.LocalBackend(path=tempfile.mkdtemp(), device="cpu", settings=settings)
    model = art.TrainableModel(name="bench", project="bench", base_model="smollm2-135m")
    loop.run_until_complete(model.register(backend))
    served = backend.served(model)
    served.language_model.eos_ids = frozenset()  # All answers are equally long.
    served.engine.publish(0)
    steps = iter(range(10**6))
    return lambda: loop.run_until_complete(step(model, batch, next(steps)))


if __name__ == "__main__":
    serve(load)
