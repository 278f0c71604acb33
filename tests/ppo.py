"""A PPO trainer of the tiny model, what it trains on, and its numbers by plain passes that share nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from groundrule.algorithms.sequences import TokenSequence
from groundrule.data.group import TrajectoryGroup
from groundrule.models.critic import Critic
from groundrule.models.lora import LoraSettings
from groundrule.training.ppo import PpoTrainer
from groundrule.training.ppo_batch import ScoredTokens
from groundrule.training.ppo_settings import PpoSettings
from tiny import sampled_trajectories, tiny_model

START = (1, 40, 41, 42)


def trainer(*, moved: bool = False, separate: bool = False, **settings: Any) -> PpoTrainer:
    """With `moved`, policy and critic are away from where they begin; with `separate`, each has a base of its own."""
    others = {"reference": tiny_model(), "critic": tiny_model()} if separate else {}
    chosen = PpoSettings(**{"lora": LoraSettings(rank=4, alpha=8), **settings})
    made = PpoTrainer(tiny_model(), chosen, **others, seed=0)
    if moved:
        shake(made.parameters, 3)
        shake(made.critic_parameters, 4)
    return made


def shake(parameters: dict[str, Any], seed: int, *, by: float = 0.1) -> None:
    """Move weights by some noise."""
    noise = torch.Generator().manual_seed(seed)
    for parameter in parameters.values():
        parameter.data += by * torch.randn(parameter.shape, generator=noise)


def group(made: PpoTrainer, rewards: Sequence[float], **more: Any) -> TrajectoryGroup:
    """Answers to one question, sampled from the policy as it is."""
    return TrajectoryGroup(sampled_trajectories(made.model, rewards, **more))


def written() -> list[ScoredTokens]:
    """Two trajectories with a tool result between two turns, alike at first, and a short one of a single turn."""
    turns = [
        TokenSequence(
            START, (50, 51, 2, 60, 61, 62, 52, 2), (True,) * 3 + (False,) * 3 + (True,) * 2, (0.0,) * 8, 0.7
        ),
        TokenSequence(
            START, (50, 51, 2, 60, 63, 71, 72, 2), (True,) * 3 + (False,) * 2 + (True,) * 3, (0.0,) * 8, 0.7
        ),
        TokenSequence(START, (55, 2), (True, True), (0.0, 0.0), 0.7),
    ]
    return [ScoredTokens(score, ((s,),)) for score, s in zip((1.0, -0.5, 0.25), turns, strict=True)]


def places(sequence: TokenSequence) -> torch.Tensor:
    """Where the sampled tokens stand."""
    return len(sequence.prompt_ids) + torch.nonzero(torch.tensor(sequence.sampled))[:, 0]


def plain_logprobs(network: Any, sequence: TokenSequence) -> torch.Tensor:
    """log p of the sampled tokens by one pass over the whole sequence."""
    ids, at = torch.tensor([*sequence.prompt_ids, *sequence.ids]), places(sequence)
    logits = network(input_ids=ids[None], use_cache=False).logits[0] / sequence.temperature
    return torch.log_softmax(logits, dim=-1)[at - 1].gather(-1, ids[at][:, None])[:, 0]


def plain_values(critic: Critic, sequence: TokenSequence) -> torch.Tensor:
    """The head on the hidden state before each sampled token, by one pass over the whole sequence."""
    ids = torch.tensor([[*sequence.prompt_ids, *sequence.ids]])
    with critic.switched_on():
        hidden = critic.model.core(input_ids=ids, use_cache=False).last_hidden_state[0]
    values: torch.Tensor = critic.head(hidden)[:, 0]
    return values[places(sequence) - 1]
