"""Run folders with one thing wrong each, as a training would have left them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from openai.types.chat.chat_completion import Choice

from groundrule.data import Trajectory, TrajectoryGroup
from groundrule.data.runs import Run

CONFIG = {"run": {"project": "support", "name": "first"}, "train": {"steps": 2}}
OPENING = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Refunds?"}]


def sampled(text: str = "Yes.", *, finish_reason: str = "stop", logprobs: bool = True) -> Choice:
    """An answer as the local endpoint returns it, or as an endpoint does that gives no logprobs."""
    body: dict[str, Any] = {
        "index": 0,
        "finish_reason": finish_reason,
        "message": {"role": "assistant", "content": text},
    }
    if logprobs:
        token = {"token": text, "logprob": -0.5, "bytes": None, "top_logprobs": []}
        body |= {
            "prompt_token_ids": [1, 2],
            "token_ids": [3],
            "logprobs": {"content": [token], "refusal": None},
        }
    return Choice.model_validate(body)


def attempt(reward: float = 0.5, *, unscored: str | None = None, **choice: Any) -> Trajectory:
    """One attempt at the only question."""
    return Trajectory(messages_and_choices=[*OPENING, sampled(**choice)], reward=reward, unscored=unscored)


def group_with(*rewards: float, **choice: Any) -> TrajectoryGroup:
    """Attempts with these rewards."""
    return TrajectoryGroup([attempt(r, **choice) for r in rewards], scenario_id="refunds")


def made_up_run(
    folder: Path,
    steps: Sequence[Sequence[TrajectoryGroup]],
    *,
    adapters: Sequence[bytes] = (b"first", b"second"),
    means: Sequence[float] = (0.4, 0.5),
) -> Path:
    """A run folder with these groups, adapters and mean rewards, one each a step."""
    with Run.create(folder, CONFIG) as run:
        for step, groups in enumerate(steps, start=1):
            checkpoint = run.checkpoint_folder(step)
            checkpoint.mkdir(parents=True)
            (checkpoint / "adapter_model.safetensors").write_bytes(adapters[step - 1])
            run.record_step(step, groups, {"reward/mean": means[step - 1]})
    return folder


def healthy_run(folder: Path) -> Path:
    """Two steps in which everything went well."""
    return made_up_run(folder, [[group_with(0.2, 0.6)], [group_with(0.3, 0.7)]])
