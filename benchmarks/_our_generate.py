"""Generation by our decoder, once per line: `python _our_generate.py BATCH.json`, see `generate.py`."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from _child import serve, timed
from _our_update import moved_trainer

from groundrule.models.generate import generate
from groundrule.models.lora import LoraSettings, adapter_state
from groundrule.models.sampling import SamplingRequest
from groundrule.models.snapshot import snapshot
from groundrule.training.lora_trainer import TrainerSettings


def load() -> Callable[[], dict[str, float]]:
    from safetensors.torch import save_file

    batch = json.loads(Path(sys.argv[1]).read_text())
    model = moved_trainer(TrainerSettings(lora=LoraSettings(**batch["lora"]))).model
    save_file(adapter_state(model), batch["adapter"])
    model.eos_ids = frozenset()  # All answers are equally long.

    def answer(tokens: int) -> None:
        requests = [
            SamplingRequest(tuple(prompt), max_tokens=tokens, temperature=1.0, seed=seed)
            for seed, prompt in enumerate(p for p in batch["prompts"] for _ in range(batch["answers"]))
        ]
        # A training step begins with weights that have changed, so folding the adapter in is counted.
        samples = generate(snapshot(model), requests)
        lengths = {len(sample.token_ids) for sample in samples}
        if lengths != {tokens}:
            raise RuntimeError(f"answers of {lengths} tokens, {tokens} were asked for")

    def work() -> dict[str, Any]:
        return {**timed("first", lambda: answer(1)), **timed("whole", lambda: answer(batch["tokens"]))}

    return work


if __name__ == "__main__":
    serve(load)
