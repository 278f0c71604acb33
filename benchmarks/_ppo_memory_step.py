"""One step of one mode in a process of its own: `python _ppo_memory_step.py MODE WORK.json`, see `ppo_memory.py`.

Policy adapter and reward head are moved from the zeros that they begin with, so that every weight has a gradient. A
small step comes before the measured one: in a training the optimizers have their states, and libraries are loaded.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import peft  # noqa: F401  Loaded here so that it is not taken for the model's memory.
import torch
import transformers.models.llama.modeling_llama  # noqa: F401
from _child import resident_mb, serve

from groundrule.algorithms.loss_settings import PolicyLossConfig
from groundrule.data.group import TrajectoryGroup
from groundrule.data.trajectory import Trajectory
from groundrule.models.load import LanguageModel, load_model
from groundrule.models.lora import LoraSettings
from groundrule.models.reward_model import RewardModel, new_reward_model
from groundrule.models.scalar_model import value_path
from groundrule.training.lora_trainer import LoraTrainer, TrainerSettings
from groundrule.training.ppo import PpoTrainer
from groundrule.training.ppo_settings import PpoSettings

UNLIKELY = -11.0
"""What a sampler says of a token drawn by chance, near -log(vocabulary)."""


@dataclass(frozen=True)
class Work:
    """Token ids, group by group; each group's first list is its prompt."""

    groups: Sequence[Sequence[Sequence[int]]]
    lora: dict[str, Any] = field(default_factory=dict)

    @property
    def answers(self) -> int:
        """Of all groups."""
        return sum(len(group) - 1 for group in self.groups)

    def small(self) -> Work:
        """The beginnings of two answers of the first group."""
        return Work([[ids[:4] for ids in self.groups[0][:3]]], self.lora)

    def trajectories(self, rewards: Iterable[float]) -> list[TrajectoryGroup]:
        """As a gather would hand them over; one reward an answer."""
        given = iter(rewards)
        return [
            TrajectoryGroup([_trajectory(prompt, ids, next(given)) for ids in answers])
            for prompt, *answers in self.groups
        ]


def _trajectory(prompt: Sequence[int], ids: Sequence[int], reward: float) -> Trajectory:
    logprobs = [{"token": "", "logprob": UNLIKELY, "bytes": [], "top_logprobs": []} for _ in ids]
    choice = {
        "index": 0,
        "finish_reason": "stop",
        "message": {"role": "assistant", "content": ""},
        "logprobs": {"content": logprobs},
        "token_ids": list(ids),
        "prompt_token_ids": list(prompt),
    }
    return Trajectory(messages_and_choices=[{"role": "user", "content": ""}, choice], reward=reward)


Step = Callable[[Work], dict[str, float]]


def ppo_shared(work: Work) -> Step:
    """Policy, critic and reward model are adapters on one base; the reference is the base."""
    model, lora = loaded(), LoraSettings(**work.lora)
    trainer = PpoTrainer(model, ppo_settings(work))
    return ppo_step(trainer, new_reward_model(model, lora))


def ppo_apart(work: Work) -> Step:
    """Four models in memory."""
    policy, reference, critic, judge = (loaded() for _ in range(4))
    trainer = PpoTrainer(policy, ppo_settings(work), reference=reference, critic=critic)
    return ppo_step(trainer, new_reward_model(judge, LoraSettings(**work.lora)))


def grpo_folded(work: Work) -> Step:
    """One model; its adapter switched off is the reference, and rewards come from outside."""
    loss = PolicyLossConfig(kl_coef=0.05, importance="token")
    trainer = LoraTrainer(loaded(), TrainerSettings(policy_loss=loss, lora=LoraSettings(**work.lora)))
    move(trainer.parameters)

    def step(work: Work) -> dict[str, float]:
        metrics = trainer.step(work.trajectories(float(i % 2) for i in range(work.answers)))
        return {"updated": metrics["train/updated"]}

    return step


MODES: dict[str, Callable[[Work], Step]] = {
    "ppo-shared": ppo_shared,
    "ppo": ppo_apart,
    "grpo-folded": grpo_folded,
}
"""By the names that the plan has for them."""


def loaded() -> LanguageModel:
    return load_model("smollm2-135m", device="cpu")


def ppo_settings(work: Work) -> PpoSettings:
    """One update of policy and critic from all answers together, as GRPO makes one."""
    return PpoSettings(epochs=1, trajectories_per_update=work.answers, lora=LoraSettings(**work.lora))


def ppo_step(trainer: PpoTrainer, judge: RewardModel) -> Step:
    """The reward model scores all answers, then the trainer learns from them."""
    move(trainer.parameters)
    torch.nn.init.normal_(judge.head.weight, generator=torch.Generator().manual_seed(1))

    def step(work: Work) -> dict[str, float]:
        paths = [value_path((*prompt, *ids)) for prompt, *answers in work.groups for ids in answers]
        metrics = trainer.step(work.trajectories(judge.raw_values(paths)))
        return {"updated": metrics["ppo/updated"]}

    return step


def move(parameters: dict[str, Any]) -> None:
    """Away from the zero that an adapter begins as."""
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for name, parameter in parameters.items():
            if "lora_B" in name:
                parameter.normal_(std=0.01, generator=noise)


def load() -> Callable[[], dict[str, float]]:
    mode, path = sys.argv[1:]
    work = Work(**json.loads(Path(path).read_text()))
    before = resident_mb()
    step = MODES[mode](work)
    step(work.small())
    return lambda: {"before_mb": before, **step(work)}


if __name__ == "__main__":
    serve(load)
