"""How far a trained policy has gone from the one that it began as, on answers that it gave itself."""

from __future__ import annotations

from collections.abc import Sequence

from groundrule.algorithms.sequences import sequences_of
from groundrule.data.group import TrajectoryGroup
from groundrule.models.load import LanguageModel
from groundrule.models.tree_pass import all_logprobs
from groundrule.training.batch import tree_of

TOKENS_AT_ONCE = 2048
"""Unique tokens that pass through the model together."""


def answer_kl(model: LanguageModel, groups: Sequence[TrajectoryGroup]) -> list[list[float]]:
    """log p - log p_ref of every member of every group, in nats, summed over its sampled tokens.

    p is the model with its adapter and p_ref the same weights without, both at the temperature of sampling. The mean
    over answers that the policy sampled is an estimate of the KL without bias (k1, Schulman 2020); one number may be
    below 0. Answers without sampled tokens give none.
    """
    members = [
        (g, m, s) for g, group in enumerate(groups) for m, t in enumerate(group) for s in sequences_of(t)
    ]
    tree = tree_of(sequence for _, _, sequence in members)
    with model.lock:
        policy = all_logprobs(model, tree, tokens_at_once=TOKENS_AT_ONCE)
        with model.base_only():
            reference = all_logprobs(model, tree, tokens_at_once=TOKENS_AT_ONCE)
    sums: list[dict[int, float]] = [{} for _ in groups]
    for (g, m, _), p, p_ref in zip(members, policy, reference, strict=True):
        sums[g][m] = sums[g].get(m, 0.0) + float((p.double() - p_ref.double()).sum())
    return [list(group.values()) for group in sums]
