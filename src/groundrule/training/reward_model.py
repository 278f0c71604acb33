"""Reward models from rankings: all answers of one ranking are one batch element and share what they begin with.

Rankings of a step go through the model in bundles, each one tree of tokens without padding. How they are bundled, and
where a tree is cut, bounds memory and does not change the gradient.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from statistics import fmean, pstdev
from typing import Literal

import torch
from pydantic import BaseModel, ConfigDict, Field

from groundrule.algorithms.ranking_loss import RankingLossConfig, ranking_loss, share_right
from groundrule.data.preferences import Ranking
from groundrule.errors import TrainingError
from groundrule.models.load import LanguageModel
from groundrule.models.lora import LoraSettings
from groundrule.models.reward_files import save_reward_model
from groundrule.models.reward_model import new_reward_model, whole_reward_model
from groundrule.models.tree import token_tree
from groundrule.models.tree_pass import add_joint_gradients
from groundrule.rewards.learned import ValueScale
from groundrule.training.optimizing import adamw, set_learning_rate, take_step
from groundrule.training.ranking_batch import ReadRanking, bundles, read_rankings
from groundrule.training.schedule import falling_rate, shuffled_batches

SCALED_ON = 256
"""Rankings, drawn by the seed, whose answers say where the values lie once the training is over."""


class RewardModelSettings(BaseModel):
    """How rankings become steps."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    loss: RankingLossConfig = RankingLossConfig()
    """What a ranking says of values: Bradley-Terry over its pairs, or Plackett-Luce."""
    learning_rate: float = Field(default=2e-4, gt=0)
    """At the first step; it falls along a line to a tenth of this at the last."""
    epochs: int = Field(default=1, ge=1)
    """How often every ranking is seen, each time in another order. More than one overfits soon (Ouyang et al. 2022)."""
    rankings_per_step: int = Field(default=8, ge=1)
    """Rankings whose mean loss makes an update."""
    max_grad_norm: float = 1.0
    """Longer gradients are brought to this length."""
    weight_decay: float = 0.0
    """Of AdamW."""
    tokens_at_once: int = Field(default=1024, ge=1)
    """Unique tokens in one graph. A ranking with more is computed twice, the second time in pieces."""
    tuning: Literal["lora", "full"] = "lora"
    """`full` trains all weights, of a model that nobody else uses; a tenth of the usual learning rate is a start."""
    lora: LoraSettings = LoraSettings()
    """Shape of the reward model's adapter."""


class RewardModelTrainer:
    """Trains a new head and a new adapter on a base whose own weights, and other adapters, stay as they are.

    With `tuning="full"` the base's own weights are trained instead of an adapter.
    """

    def __init__(
        self, model: LanguageModel, settings: RewardModelSettings | None = None, *, seed: int = 0
    ) -> None:
        self.settings = settings or RewardModelSettings()
        self.seed = seed
        is_whole = self.settings.tuning == "full"
        self.reward_model = (
            whole_reward_model(model) if is_whole else new_reward_model(model, self.settings.lora, seed=seed)
        )
        self.parameters = self.reward_model.parameters()
        if is_whole:
            for parameter in self.parameters.values():
                parameter.requires_grad_(True)
        self.optimizer = adamw(
            self.parameters, self.settings.learning_rate, weight_decay=self.settings.weight_decay
        )
        self.steps = 0
        self.rankings = 0
        """Different ones that were trained on, and below what they held."""
        self.comparisons = 0

    def fit(self, rankings: Sequence[Ranking]) -> Iterator[dict[str, float]]:
        """One dictionary of metrics a step, about the values before it; after the last, the scale is set.

        Rankings of ties only teach nothing and are left out. Raises `TrainingError` where there are no others, and
        for an answer that the model cannot read whole.
        """
        read = read_rankings(rankings, self.reward_model)
        taught = [ranking for ranking in read if ranking.comparisons]
        if not taught:
            raise TrainingError(
                f"{len(read)} rankings, and none puts one answer above another; a reward model learns from "
                "differences only"
            )
        self.rankings, self.comparisons = len(taught), sum(len(r.comparisons) for r in taught)
        settings = self.settings
        batches = shuffled_batches(
            len(taught), settings.rankings_per_step, epochs=settings.epochs, seed=self.seed
        )
        for number, batch in enumerate(batches, start=1):
            rate = falling_rate(settings.learning_rate, number, len(batches))
            set_learning_rate(self.optimizer, rate)
            metrics = self._step([taught[i] for i in batch])
            yield {**metrics, "reward_model/learning_rate": rate}
        self._set_scale(taught)

    def save(self, folder: Path) -> None:
        """Write the reward model, with how it was trained."""
        facts = {
            "settings": self.settings.model_dump(mode="json"),
            "seed": self.seed,
            "steps": self.steps,
            "rankings": self.rankings,
            "comparisons": self.comparisons,
        }
        save_reward_model(self.reward_model, folder, training=facts)

    def accumulate(self, rankings: Sequence[ReadRanking]) -> tuple[float, list[list[float]]]:
        """Add the gradient of the mean loss of these rankings to `.grad`; the loss, and every answer's value."""
        total, values = 0.0, list[list[float]]()

        def loss_of(bundle: Sequence[ReadRanking], rows: Sequence[torch.Tensor]) -> torch.Tensor:
            found = torch.split(torch.cat(list(rows)), [len(r.paths) for r in bundle])
            values.extend(v.tolist() for v in found)
            losses = [
                ranking_loss(v, r.tiers, r.comparisons, certainty=r.certainty, config=self.settings.loss)
                for r, v in zip(bundle, found, strict=True)
            ]
            return torch.stack(losses).sum() / len(rankings)

        with self.reward_model.switched_on():
            for bundle in bundles(rankings, self.settings.tokens_at_once):
                loss = add_joint_gradients(
                    self.reward_model.model,
                    token_tree([path for r in bundle for path in r.paths]),
                    partial(loss_of, bundle),
                    tokens_at_once=self.settings.tokens_at_once,
                    read=self.reward_model.read,
                )
                total += float(loss)
        return total, values

    def _step(self, rankings: Sequence[ReadRanking]) -> dict[str, float]:
        with self.reward_model.model.lock:
            self.optimizer.zero_grad(set_to_none=True)
            loss, values = self.accumulate(rankings)
            norm, is_updated = take_step(self.optimizer, loss, max_grad_norm=self.settings.max_grad_norm)
        self.steps += 1
        every = [v for row in values for v in row]
        pairs = list(zip(values, rankings, strict=True))
        gaps = [fmean(v[c.chosen] - v[c.rejected] for c in r.comparisons) for v, r in pairs]
        return {
            "reward_model/loss": loss,
            "reward_model/accuracy": fmean(share_right(v, r.comparisons) for v, r in pairs),
            "reward_model/gap": fmean(gaps),
            "reward_model/value_mean": fmean(every),
            "reward_model/value_std": pstdev(every),
            "reward_model/grad_norm": norm,
            "reward_model/rankings": float(len(rankings)),
            "reward_model/pairs": float(sum(len(r.comparisons) for r in rankings)),
            "reward_model/ties": float(sum(r.ties for r in rankings)),
            "reward_model/unique_tokens": float(sum(r.tokens for r in rankings)),
            "reward_model/all_tokens": float(sum(len(p.read) for r in rankings for p in r.paths)),
            "reward_model/updated": float(is_updated),
        }

    def _set_scale(self, rankings: Sequence[ReadRanking]) -> None:
        drawn = random.Random(f"{self.seed}/scale").sample(rankings, min(SCALED_ON, len(rankings)))
        raw = self.reward_model.raw_values([path for ranking in drawn for path in ranking.paths])
        self.reward_model.scale = ValueScale.of(raw)
