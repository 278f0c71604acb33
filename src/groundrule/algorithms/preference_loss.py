"""What preferences teach: Bradley-Terry and Plackett-Luce for reward models, DPO for policies."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn.functional import logsigmoid


def bradley_terry_loss(
    chosen: torch.Tensor,
    rejected: torch.Tensor,
    *,
    margin: float | torch.Tensor = 0.0,
    centring: float = 0.0,
    certainty: float | torch.Tensor = 1.0,
) -> torch.Tensor:
    """Mean of -log sigmoid(r_chosen - r_rejected - margin) over pairs, (pairs,) -> ().

    `centring` adds that much of mean((r_chosen + r_rejected)^2), which keeps scores around 0 (Eisenstein et al.
    2023). `certainty` is the probability, 0..1, that the chosen answer is the better one: a soft label, with the
    other side weighed in by the rest.
    """
    gap = chosen - rejected - margin
    certain = torch.as_tensor(certainty, dtype=gap.dtype, device=gap.device)
    loss = -(certain * logsigmoid(gap) + (1 - certain) * logsigmoid(-gap))
    return loss.mean() + centring * (chosen + rejected).square().mean()


def plackett_luce_loss(scores: torch.Tensor, tiers: Sequence[Sequence[int]]) -> torch.Tensor:
    """-log probability of a ranking of K answers, per choice made, (K,) -> ().

    The best is drawn with probability softmax(scores), then the best of the rest, and so on (Luce 1959, Plackett
    1975). `tiers` are indices best first; within a tier nothing is said of the order, so each of its members is
    compared with all lower tiers and not with its own (the limit of ties: no model of drawing them). Two answers give
    Bradley-Terry. A single tier teaches nothing and gives 0.
    """
    losses = []
    for number, tier in enumerate(tiers[:-1]):
        below = [i for lower in tiers[number + 1 :] for i in lower]
        rest = scores[torch.tensor(below, device=scores.device)]
        for i in tier:
            pool = torch.cat([scores[i : i + 1], rest])
            losses.append(torch.logsumexp(pool, dim=0) - scores[i])
    return torch.stack(losses).mean() if losses else scores.sum() * 0.0


def dpo_loss(
    chosen: torch.Tensor,
    rejected: torch.Tensor,
    reference_chosen: torch.Tensor,
    reference_rejected: torch.Tensor,
    *,
    beta: float = 0.1,
    certainty: float | torch.Tensor = 1.0,
) -> torch.Tensor:
    """Direct preference optimisation (Rafailov et al. 2023, eq. 7) on summed log-probabilities, (pairs,) -> ().

    -log sigmoid(beta ((log p - log p_ref)(chosen) - (log p - log p_ref)(rejected))); `certainty` below 1 is the
    label-smoothed form (cDPO): its rest counts the pair the other way round.
    """
    gap = beta * ((chosen - reference_chosen) - (rejected - reference_rejected))
    certain = torch.as_tensor(certainty, dtype=gap.dtype, device=gap.device)
    return -(certain * logsigmoid(gap) + (1 - certain) * logsigmoid(-gap)).mean()
