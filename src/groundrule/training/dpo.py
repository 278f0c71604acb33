"""Direct preference optimisation of the adapter (DPO, Rafailov et al. 2023): pairs in, a policy out, no reward model.

The reference is the same weights with the adapter off. The loss couples the two answers of a pair, which may lie in
different pieces of the token tree. So where the tree is more than one graph may hold, it is passed through twice:
first without gradients, for all log-probabilities and the derivative of the loss by each, then piece by piece, each
log-probability weighed by its derivative. By the chain rule that is the gradient of the whole loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch
from pydantic import BaseModel, ConfigDict, Field

from groundrule.algorithms.preference_loss import dpo_loss
from groundrule.data.preferences import PreferencePair
from groundrule.models.load import LanguageModel
from groundrule.models.lora import LoraSettings, adapter_parameters, add_adapter, has_adapter
from groundrule.models.tree_pass import add_joint_gradients, all_logprobs
from groundrule.training.optimizing import adamw, set_learning_rate, take_step
from groundrule.training.pair_batch import PairBatch, PairSums, PairTokens, pair_tokens
from groundrule.training.schedule import falling_rate, shuffled_batches

LEVEL = 1e-4
"""Implicit rewards closer than beta times this many nats are level: about what float32 adds to sums of logprobs."""


class DpoSettings(BaseModel):
    """How preference pairs become steps."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    beta: float = Field(default=0.1, gt=0)
    """How dear it is to move away from the reference: the coefficient of the KL that DPO stands for."""
    label_smoothing: float = Field(default=0.0, ge=0, lt=0.5)
    """The share of labels that are taken to be wrong, on top of each pair's own certainty; see `dpo_objective`."""
    sft_weight: float = Field(default=0.0, ge=0)
    """Weight of the loss of imitating the chosen answer; see `dpo_objective`."""
    learning_rate: float = Field(default=1e-4, gt=0)
    """At the first step; it falls along a line to a tenth of this at the last."""
    epochs: int = Field(default=1, ge=1)
    """How often every pair is seen, each time in another order."""
    pairs_per_step: int = Field(default=8, ge=1)
    """Pairs whose mean loss makes an update."""
    prompts_per_step: int | None = Field(default=None, ge=1)
    """Instead of `pairs_per_step`: so many prompts with all their pairs, which share prompt and answers. Six answers in
    order make 15 pairs, at hardly more than the cost of three by themselves."""
    max_grad_norm: float = 1.0
    """Longer gradients are brought to this length."""
    tokens_at_once: int = Field(default=1024, ge=1)
    """Unique tokens in one graph: bounds memory, does not change the gradient."""
    lora: LoraSettings = LoraSettings()
    """Shape of the adapter, where the model has none yet."""


def dpo_objective(pairs: PairSums, settings: DpoSettings) -> torch.Tensor:
    """The loss of a step, (): DPO (Rafailov et al. 2023, eq. 7), the mean over pairs.

    A pair's certainty c is the probability that its label is right: c L(chosen, rejected) + (1 - c) L(rejected,
    chosen), conservative DPO (Mitchell 2023, "A note on DPO with noisy preferences"), whose minimum is at an implicit
    reward margin of logit c instead of infinity. There c is one number, 1 - label_smoothing. Here each pair may have
    its own, and smoothing flips it once more: c (1 - s) + (1 - c) s.

    `sft_weight` times -log p(chosen) / tokens is added (Pang et al. 2024, "Iterative reasoning preference
    optimization"). DPO asks only for a margin, and can reach it with the chosen answer becoming less likely
    too, if the rejected one does so faster (Pal et al. 2024); this term holds the chosen one up.
    """
    smoothing = settings.label_smoothing
    certainty = pairs.certainty * (1 - smoothing) + (1 - pairs.certainty) * smoothing
    loss = dpo_loss(*pairs.policy.T, *pairs.reference.T, beta=settings.beta, certainty=certainty)
    return loss + settings.sft_weight * _imitation(pairs) if settings.sft_weight else loss


def pair_batches(pairs: Sequence[PreferencePair], settings: DpoSettings, *, seed: int) -> list[list[int]]:
    """Which pairs make each update, by their places; the seed decides the order."""
    if settings.prompts_per_step is None:
        return shuffled_batches(len(pairs), settings.pairs_per_step, epochs=settings.epochs, seed=seed)
    by_prompt: dict[str, list[int]] = {}
    for place, pair in enumerate(pairs):
        by_prompt.setdefault(pair.prompt_key, []).append(place)
    prompts = list(by_prompt.values())
    chosen = shuffled_batches(len(prompts), settings.prompts_per_step, epochs=settings.epochs, seed=seed)
    return [[place for prompt in batch for place in prompts[prompt]] for batch in chosen]


def dpo_metrics(pairs: PairSums, settings: DpoSettings) -> dict[str, float]:
    """What a step says of its pairs, before it moves the weights.

    The implicit reward of an answer is beta (log p - log p_ref) (Rafailov et al. 2023, section 4). Accuracy is the
    share of pairs with the chosen one's higher; level ones count half, as a coin would have it. Drift is half the
    mean squared log ratio of a token, in nats: Schulman's k2 estimate (2020) of the KL between policy and reference,
    exact to second order for answers that either of them would write, and a mere distance for others.
    """
    rewards = settings.beta * (pairs.policy.detach() - pairs.reference)
    margins = rewards[:, 0] - rewards[:, 1]
    level = margins.abs() <= LEVEL * settings.beta
    right = torch.where(level, 0.5, (margins > 0).double())
    numbers = {
        "dpo/loss": dpo_objective(pairs, settings),
        "dpo/accuracy": right.mean(),
        "dpo/margin": margins.mean(),
        "dpo/reward_chosen": rewards[:, 0].mean(),
        "dpo/reward_rejected": rewards[:, 1].mean(),
        "dpo/drift": pairs.squares.sum() / pairs.tokens.sum() / 2,
        "dpo/chosen_loss": _imitation(pairs),
        "dpo/pairs": torch.tensor(len(margins)),
        "dpo/tokens": pairs.tokens.sum(),
    }
    return {name: float(value.detach()) for name, value in numbers.items()}


def _imitation(pairs: PairSums) -> torch.Tensor:
    """Mean over pairs of the chosen answer's loss a token, in nats."""
    return -(pairs.policy[:, 0] / pairs.tokens[:, 0]).mean()


class DpoTrainer:
    """Trains the adapter of a model on pairs of a better and a worse answer."""

    def __init__(self, model: LanguageModel, settings: DpoSettings | None = None, *, seed: int = 0) -> None:
        self.model = model
        self.settings = settings or DpoSettings()
        self.seed = seed
        if not has_adapter(model):
            add_adapter(model, self.settings.lora, seed=seed)
        self.parameters = adapter_parameters(model)
        self.optimizer = adamw(self.parameters, self.settings.learning_rate)

    def fit(self, pairs: Sequence[PreferencePair], *, done: int = 0) -> Iterator[dict[str, float]]:
        """One dictionary of metrics a step, of its pairs before the step; see `dpo_metrics`.

        The first `done` steps are passed over: after a checkpoint the rest is what it would have been without a
        break. Raises `TrainingError` at once when there are no pairs or one cannot be trained on.
        """
        settings, tokens = self.settings, pair_tokens(pairs, self.model)
        batches = pair_batches(pairs, settings, seed=self.seed)
        return (
            self._step(
                PairBatch([tokens[i] for i in batch]),
                falling_rate(settings.learning_rate, step, len(batches)),
            )
            for step, batch in enumerate(batches, start=1)
            if step > done
        )

    def evaluate(self, pairs: Sequence[PreferencePair]) -> dict[str, float]:
        """The numbers of `dpo_metrics` over all these pairs, without training on them."""
        tokens, size = pair_tokens(pairs, self.model), self.settings.pairs_per_step
        parts = [self._looked_at(tokens[start : start + size]) for start in range(0, len(tokens), size)]
        return dpo_metrics(PairSums.of(parts), self.settings)

    def accumulate(self, batch: PairBatch) -> PairSums:
        """Add the gradient of the batch's loss to the adapter's `.grad`; the numbers that it was taken at."""
        reference, seen = self._reference(batch), []

        def loss_of(policy: Sequence[torch.Tensor]) -> torch.Tensor:
            seen.append(batch.compare(policy, reference))
            return dpo_objective(seen[0], self.settings)

        add_joint_gradients(self.model, batch.tree, loss_of, tokens_at_once=self.settings.tokens_at_once)
        return seen[0]

    def _step(self, batch: PairBatch, rate: float) -> dict[str, float]:
        set_learning_rate(self.optimizer, rate)
        with self.model.lock:
            self.optimizer.zero_grad(set_to_none=True)
            metrics = dpo_metrics(self.accumulate(batch), self.settings)
            norm, is_updated = take_step(
                self.optimizer, metrics["dpo/loss"], max_grad_norm=self.settings.max_grad_norm
            )
        return {
            **metrics,
            "dpo/grad_norm": norm,
            "dpo/learning_rate": rate,
            "dpo/unique_tokens": float(batch.tree.unique_tokens),
            "dpo/all_tokens": float(batch.tree.all_tokens),
            "dpo/updated": float(is_updated),
        }

    def _looked_at(self, pairs: Sequence[PairTokens]) -> PairSums:
        batch = PairBatch(pairs)
        with self.model.lock:
            policy = all_logprobs(self.model, batch.tree, tokens_at_once=self.settings.tokens_at_once)
            return batch.compare(policy, self._reference(batch))

    def _reference(self, batch: PairBatch) -> list[torch.Tensor]:
        """Of every path, found anew in each step, so that a step depends on nothing but weights and pairs."""
        with self.model.base_only():
            return all_logprobs(self.model, batch.tree, tokens_at_once=self.settings.tokens_at_once)
