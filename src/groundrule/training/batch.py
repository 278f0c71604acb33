"""Which sequences of a step's groups are trained on, with what advantage, and why the others are not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, pstdev
from typing import TYPE_CHECKING

from groundrule.algorithms.advantages import advantages, whitened
from groundrule.algorithms.sequences import TokenSequence, joined, sequences_of
from groundrule.data.group import TrajectoryGroup
from groundrule.data.messages import is_choice, message_of
from groundrule.data.trajectory import Trajectory
from groundrule.errors import TrainingError
from groundrule.models.load import LanguageModel
from groundrule.models.tree import Path, TokenTree, token_tree

if TYPE_CHECKING:
    from groundrule.training.lora_trainer import TrainerSettings

TIE = 1e-9


@dataclass(frozen=True)
class TrainingItem:
    """One sequence and the advantage that its tokens are pushed by."""

    sequence: TokenSequence
    advantage: float
    has_logprobs: bool = True


@dataclass(frozen=True)
class StepPlan:
    """What a step trains on, and the numbers that explain it."""

    items: list[TrainingItem]
    metrics: dict[str, float]


def plan_step(groups: Sequence[TrajectoryGroup], settings: TrainerSettings, model: LanguageModel) -> StepPlan:
    """Sequences with a non-zero advantage. Raises `TrainingError` when scored answers cannot be trained on.

    Whitening counts all scored answers of the step, but a group in which all are equal stays untouched, while
    REINFORCE++ pushes it by what the mean of the step happens to be off zero.
    """
    items: list[TrainingItem] = []
    level: list[TrainingItem] = []
    """Without a push of their own; only whitening asks for them."""
    count: Counter[str] = Counter(groups=len(groups))
    for index, group in enumerate(groups):
        pushes = _pushes(group, settings)
        known = [p for p in pushes if p is not None]
        count["trajectories"] += len(group)
        count["unscored"] += len(group) - len(known)
        count["exceptions"] += len(group.exceptions)
        count["truncated"] += sum(map(is_truncated, group))
        has_signal = any(abs(p) >= TIE for p in known)
        count["groups_without_signal"] += not has_signal
        for member, (trajectory, push) in enumerate(zip(group.trajectories, pushes, strict=True)):
            if push is None or (settings.truncated == "mask" and is_truncated(trajectory)):
                continue
            if settings.whiten or abs(push) >= TIE:
                place = f"group {index}, trajectory {member}"
                (items if has_signal else level).extend(_items(trajectory, push, settings, model, place))
    if settings.whiten:
        items = _whitened(items, level)
    return StepPlan(items, _metrics(groups, items, count))


def is_truncated(trajectory: Trajectory) -> bool:
    """Whether the last sampled answer was cut at its length limit."""
    last = next((i for i in reversed(trajectory.messages_and_choices) if is_choice(i)), None)
    return getattr(last, "finish_reason", None) == "length"


def _pushes(group: TrajectoryGroup, settings: TrainerSettings) -> list[float | None]:
    """The advantage of each member, None where it has no score."""
    rewards = group.rewards
    if settings.truncated == "drop":
        rewards = [None if is_truncated(t) else r for t, r in zip(group, rewards, strict=True)]
    return advantages(
        rewards,
        reliability=float(group.metrics.get("judge_reliability", 1.0)),
        kind=settings.advantage,
        noise=settings.tie_band * float(group.metrics.get("judge_noise", 0.0)),
    )


def _whitened(items: Sequence[TrainingItem], level: Sequence[TrainingItem]) -> list[TrainingItem]:
    """The items with their advantages brought to mean 0 and variance 1 over the tokens of both lists."""
    both = [*items, *level]
    values = whitened([i.advantage for i in both], [i.sequence.trained for i in both])
    return [replace(item, advantage=value) for item, value in zip(items, values, strict=False)]


def _items(
    trajectory: Trajectory, advantage: float, settings: TrainerSettings, model: LanguageModel, place: str
) -> list[TrainingItem]:
    sequences = sequences_of(trajectory)
    if sequences:
        return [TrainingItem(s, advantage) for s in sequences]
    if not settings.allow_training_without_logprobs:
        raise TrainingError(
            f"{place} has a reward but no sampled tokens with logprobs, so it cannot be trained on: ask the model "
            "through model.openai_client() and keep the returned Choice objects in messages_and_choices, "
            "or set allow_training_without_logprobs=True"
        )
    rebuilt = written_sequences(trajectory, model)
    if not rebuilt:
        raise TrainingError(f"{place} has no assistant turn, so there is nothing to train on")
    return [TrainingItem(s, advantage, has_logprobs=False) for s in rebuilt]


def written_sequences(
    trajectory: Trajectory, model: LanguageModel, *, prompt: int = 0
) -> list[TokenSequence]:
    """Assistant turns that were not sampled here, as the model's own template would have had them written.

    Those among the first `prompt` messages are context, and not trained on.
    """
    given = sum(message_of(m)["role"] == "assistant" for m in trajectory.messages_and_choices[:prompt])
    first, *others = model.renderer.turns(trajectory)
    return [
        sequence
        for turns in (first[given:], *others)
        for sequence in joined(
            TokenSequence(
                prompt_ids=turn.prompt_ids,
                ids=turn.answer_ids,
                sampled=(True,) * len(turn.answer_ids),
                logprobs=(0.0,) * len(turn.answer_ids),
            )
            for turn in turns
        )
    ]


def tree_of(sequences: Iterable[TokenSequence], *, share: bool = True) -> TokenTree:
    """The sequences as one tree, their sampled tokens scored; `share` False: each computed by itself."""
    return token_tree([path_of(s) for s in sequences], share=share)


def path_of(sequence: TokenSequence) -> Path:
    """The sequence as a path of a token tree, its sampled tokens scored."""
    start = len(sequence.prompt_ids)
    places = tuple(start + i for i, is_sampled in enumerate(sequence.sampled) if is_sampled)
    return Path(sequence.prompt_ids + sequence.ids, places, sequence.temperature)


def _metrics(
    groups: Sequence[TrajectoryGroup], items: Sequence[TrainingItem], count: Counter[str]
) -> dict[str, float]:
    rewards = [[r for r in g.rewards if r is not None] for g in groups]
    every = [r for group in rewards for r in group]
    prompts = {item.sequence.prompt_ids for item in items}
    metrics = {
        "train/groups": float(count["groups"]),
        "train/groups_without_signal": float(count["groups_without_signal"]),
        "train/trajectories": float(count["trajectories"]),
        "train/unscored": float(count["unscored"]),
        "train/exceptions": float(count["exceptions"]),
        "train/truncated": float(count["truncated"]),
        "train/sequences": float(len(items)),
        "train/prompt_tokens": float(sum(map(len, prompts))),
        "train/answer_tokens": float(sum(len(i.sequence.ids) for i in items)),
    }
    if every:
        metrics["reward/mean"] = fmean(every)
        metrics["reward/min"], metrics["reward/max"] = min(every), max(every)
        metrics["reward/group_std"] = fmean(pstdev(g) for g in rewards if g)
    return metrics
