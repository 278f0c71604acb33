"""Supervised fine-tuning of the adapter: what good answers look like, before reinforcement learning.

The mask is exact: the tokens of assistant turns as the model's own template would have had them written, end marker
included, and nothing else. Conversations that begin alike are computed once for what they share, without padding
(`models.tree`), and only trained tokens reach the output layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from pydantic import BaseModel, ConfigDict, Field

from groundrule.algorithms.sequences import TokenSequence
from groundrule.data.trajectory import Trajectory
from groundrule.errors import TrainingError
from groundrule.models.load import LanguageModel
from groundrule.models.lora import LoraSettings, adapter_parameters, add_adapter, has_adapter
from groundrule.models.tree_pass import add_gradients, all_logprobs
from groundrule.training.batch import tree_of, written_sequences
from groundrule.training.optimizing import adamw, set_learning_rate, take_step
from groundrule.training.schedule import falling_rate, shuffled_batches


class SftSettings(BaseModel):
    """How examples become steps."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    learning_rate: float = Field(default=2e-4, gt=0)
    """At the first step; it falls along a line to a tenth of this at the last."""
    epochs: int = Field(default=1, ge=1)
    """How often every example is seen, each time in another order."""
    examples_per_step: int = Field(default=8, ge=1)
    max_grad_norm: float = 1.0
    weight_decay: float = 0.0
    tokens_at_once: int = Field(default=1024, ge=1)
    """Unique tokens in one graph: bounds memory, does not change the gradient."""
    lora: LoraSettings = LoraSettings()
    """Shape of the adapter, where the model has none yet."""


class SftTrainer:
    """Trains the adapter of a model on conversations that show how to answer."""

    def __init__(self, model: LanguageModel, settings: SftSettings | None = None, *, seed: int = 0) -> None:
        self.model = model
        self.settings = settings or SftSettings()
        self.seed = seed
        if not has_adapter(model):
            add_adapter(model, self.settings.lora, seed=seed)
        self.parameters = adapter_parameters(model)
        self.optimizer = adamw(
            self.parameters, self.settings.learning_rate, weight_decay=self.settings.weight_decay
        )

    def fit(self, examples: Sequence[Trajectory]) -> Iterator[dict[str, float]]:
        """One dictionary of metrics a step: the mean loss of its tokens before the step, in nats.

        Raises `TrainingError` for an example without an assistant turn.
        """
        sequences = [self._sequences(i, example) for i, example in enumerate(examples)]
        size, epochs = self.settings.examples_per_step, self.settings.epochs
        batches = shuffled_batches(len(sequences), size, epochs=epochs, seed=self.seed)
        for step, batch in enumerate(batches, start=1):
            rate = falling_rate(self.settings.learning_rate, step, len(batches))
            set_learning_rate(self.optimizer, rate)
            yield self._step([s for i in batch for s in sequences[i]], rate)

    def loss(self, examples: Sequence[Trajectory]) -> float:
        """Mean loss of the trained tokens of these examples, in nats, without training on them."""
        sequences = [s for i, example in enumerate(examples) for s in self._sequences(i, example)]
        with self.model.lock:
            rows = all_logprobs(self.model, tree_of(sequences), tokens_at_once=self.settings.tokens_at_once)
        return -float(torch.cat(rows).mean())

    def _step(self, sequences: Sequence[TokenSequence], rate: float) -> dict[str, float]:
        tree, count = tree_of(sequences), sum(s.trained for s in sequences)
        total = 0.0

        def loss_of(_: int, logprobs: torch.Tensor) -> torch.Tensor:
            nonlocal total
            loss = -logprobs.sum() / count
            total += float(loss.detach())
            return loss

        with self.model.lock:
            self.optimizer.zero_grad(set_to_none=True)
            add_gradients(self.model, tree, loss_of, tokens_at_once=self.settings.tokens_at_once)
            norm, _ = take_step(self.optimizer, total, max_grad_norm=self.settings.max_grad_norm)
        return {
            "sft/loss": total,
            "sft/grad_norm": norm,
            "sft/learning_rate": rate,
            "sft/tokens": float(count),
            "sft/unique_tokens": float(tree.unique_tokens),
        }

    def _sequences(self, index: int, example: Trajectory) -> list[TokenSequence]:
        found = written_sequences(example, self.model)
        if not any(sequence.trained for sequence in found):
            raise TrainingError(
                f"example {index} has no assistant turn, so there is nothing to learn from it; "
                "add the answer, or leave the example out"
            )
        return found
