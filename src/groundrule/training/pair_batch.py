"""Preference pairs as tokens: both answers of every pair of a batch in one tree, and what it says of them.

What answers begin with alike (the prompt, and as much of the answers) is computed once, an answer that stands in
several pairs too, and nothing is padded. Only the answers are scored: of each assistant turn after the prompt the
tokens as the model's own template would have had them written, end marker included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import torch

from groundrule.algorithms.sequences import TokenSequence
from groundrule.data.answers import Answer
from groundrule.data.preferences import PreferencePair
from groundrule.data.trajectory import Trajectory
from groundrule.errors import TrainingError
from groundrule.models.load import LanguageModel
from groundrule.training.batch import tree_of, written_sequences

SIDES = ("chosen", "rejected")


@dataclass(frozen=True)
class PairTokens:
    """A pair as token sequences: several for an answer whose turns do not continue each other."""

    number: int
    """Its place among the pairs that were given, as errors name it."""
    chosen: tuple[TokenSequence, ...]
    rejected: tuple[TokenSequence, ...]
    certainty: float


def pair_tokens(pairs: Sequence[PreferencePair], model: LanguageModel) -> list[PairTokens]:
    """Raises `TrainingError` when there are no pairs, or nothing of an answer can be trained on."""
    if not pairs:
        raise TrainingError("there are no preference pairs; give at least one")
    return [
        PairTokens(
            number,
            chosen=_sequences(pair, pair.chosen, model, f"pair {number}: the chosen answer"),
            rejected=_sequences(pair, pair.rejected, model, f"pair {number}: the rejected answer"),
            certainty=pair.certainty,
        )
        for number, pair in enumerate(pairs)
    ]


def _sequences(
    pair: PreferencePair, answer: Answer, model: LanguageModel, place: str
) -> tuple[TokenSequence, ...]:
    conversation = Trajectory(messages_and_choices=[*pair.prompt, *answer.messages], tools=pair.tools)
    found = written_sequences(conversation, model, prompt=len(pair.prompt))
    if not any(sequence.trained for sequence in found):
        raise TrainingError(
            f"{place} has no assistant turn, so there is nothing to train on; leave the pair out"
        )
    return tuple(found)


@dataclass(frozen=True)
class PairSums:
    """What policy and reference say of pairs, summed over the tokens of each answer.

    All (pairs, 2), the chosen answer first, but `certainty` (pairs,); float64 on the CPU.
    """

    policy: torch.Tensor
    """log p of the answer, in nats."""
    reference: torch.Tensor
    squares: torch.Tensor
    """(log p - log p_ref)^2 of each token."""
    tokens: torch.Tensor
    certainty: torch.Tensor

    @classmethod
    def of(cls, parts: Sequence[Self]) -> Self:
        """The pairs of all parts, one after the other."""
        return cls(**{f.name: torch.cat([getattr(part, f.name) for part in parts]) for f in fields(cls)})


class PairBatch:
    """Pairs that are looked at together, as one token tree."""

    def __init__(self, pairs: Sequence[PairTokens]) -> None:
        self.pairs = pairs
        answers = [answer for pair in pairs for answer in (pair.chosen, pair.rejected)]
        self.tree = tree_of(sequence for answer in answers for sequence in answer)
        self._answers = torch.tensor([i for i, answer in enumerate(answers) for _ in answer])
        """By path: which answer it is a part of, twice the pair's place, and one more for the rejected one."""

    def compare(self, policy: Sequence[torch.Tensor], reference: Sequence[torch.Tensor]) -> PairSums:
        """The answers' sums, given the logprobs (scored,) of every path; gradients flow to `policy`.

        Raises `TrainingError` where one is not finite.
        """
        log_p = [row.cpu().double() for row in policy]
        log_p_ref = [row.cpu().double() for row in reference]
        moved = [a.detach() - b for a, b in zip(log_p, log_p_ref, strict=True)]
        found = PairSums(
            policy=self._by_answer([row.sum() for row in log_p]),
            reference=self._by_answer([row.sum() for row in log_p_ref]),
            squares=self._by_answer([row.square().sum() for row in moved]),
            tokens=self._by_answer([torch.tensor(float(len(row))) for row in moved]),
            certainty=torch.tensor([pair.certainty for pair in self.pairs], dtype=torch.float64),
        )
        self._check(found.reference, "the reference (the adapter off)")
        self._check(found.policy, "the policy")
        return found

    def _by_answer(self, values: Sequence[torch.Tensor]) -> torch.Tensor:
        """The sum of the paths' values for each answer: (pairs, 2)."""
        sums = torch.zeros(2 * len(self.pairs), dtype=torch.float64)
        return sums.index_add(0, self._answers, torch.stack(list(values)).double()).view(-1, 2)

    def _check(self, sums: torch.Tensor, whose: str) -> None:
        for pair, side in (~sums.isfinite()).nonzero().tolist():
            raise TrainingError(
                f"pair {self.pairs[pair].number}: {whose} gives the {SIDES[side]} answer the log-probability "
                f"{sums[pair, side].item()}; the weights are damaged, or their type is too narrow for this model"
            )
