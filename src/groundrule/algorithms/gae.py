"""Values of a critic and rewards of one trajectory -> how much better each token was than expected."""

from __future__ import annotations

import torch

_TINY = 1e-8


def gae(
    rewards: torch.Tensor,
    values: torch.Tensor,
    *,
    gamma: float = 1.0,
    lam: float = 0.95,
    action_mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Advantages and returns of one trajectory, each (T,): generalised advantage estimation (Schulman et al. 2016).

    delta_t = r_t + gamma V(t+1) - V(t), A_t = delta_t + gamma lam A(t+1), return = A + V. `action_mask` is True for
    tokens of the policy. Others (tool results, later user turns) are passed over: value and advantage of the next
    policy token are carried across them, so that a turn is credited for what comes after its tool call; they get 0.
    A reward that stands on a skipped token would be lost and raises `ValueError`: place it on the token before.
    """
    mask = torch.ones_like(values, dtype=torch.bool) if action_mask is None else action_mask
    if bool((rewards[~mask] != 0).any()):
        at = int(torch.nonzero((rewards != 0) & ~mask)[0])
        raise ValueError(f"the reward at token {at} stands on a token that the policy did not write")
    advantages = torch.zeros_like(values)
    next_value = values.new_zeros(())
    carried = values.new_zeros(())
    for t in reversed(range(len(values))):
        if not mask[t]:
            continue
        delta = rewards[t] + gamma * next_value - values[t]
        carried = delta + gamma * lam * carried
        advantages[t] = carried
        next_value = values[t]
    returns = torch.where(mask, advantages + values, torch.zeros_like(values))
    return advantages, returns


def whiten(advantages: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Mean 0 and variance 1 over the tokens where `mask` is True; 0 elsewhere. Any shape.

    (A - mean) / sqrt(variance + 1e-8) with the unbiased variance. Raises `ValueError` for fewer than two tokens,
    which have no variance.
    """
    chosen = advantages[mask]
    if chosen.numel() < 2:
        raise ValueError(f"{chosen.numel()} tokens cannot be whitened; two are the least")
    scaled = (advantages - chosen.mean()) * torch.rsqrt(chosen.var(unbiased=True) + _TINY)
    return torch.where(mask, scaled, torch.zeros_like(scaled))


def value_loss(
    values: torch.Tensor,
    old_values: torch.Tensor,
    returns: torch.Tensor,
    mask: torch.Tensor,
    *,
    clip: float | None = 0.2,
) -> torch.Tensor:
    """Half the mean squared error of a critic, the worse of the plain and the clipped one, over the mask.

    0.5 mean(max((v - R)^2, (v_old + clamp(v - v_old, -clip, clip) - R)^2)), PPO's value clipping as its authors'
    code has it; None: no clip.
    """
    errors = (values - returns).square()
    if clip is not None:
        held = old_values + (values - old_values).clamp(-clip, clip)
        errors = torch.maximum(errors, (held - returns).square())
    return 0.5 * errors[mask].mean()


def kl_rewards(
    kl: torch.Tensor, score: float, action_mask: torch.Tensor, *, coefficient: float
) -> torch.Tensor:
    """Per-token rewards of RLHF: -coefficient x KL at every policy token, and the score at the last one: (T,).

    `kl` are k1 estimates, log p(token) - log p_reference(token). Raises `ValueError` when no token is the policy's.
    """
    places = torch.nonzero(action_mask)
    if not len(places):
        raise ValueError("no token was written by the policy, so the score has no place")
    rewards = torch.where(action_mask, -coefficient * kl, torch.zeros_like(kl))
    rewards[places[-1]] += score
    return rewards


def adapted_kl_coefficient(
    coefficient: float, kl: float, *, target: float, answers: int, horizon: int = 10_000
) -> float:
    """The next coefficient: up to 20 % of answers / horizon nearer to where KL is `target` (Ziegler et al. 2019)."""
    error = min(0.2, max(-0.2, kl / target - 1.0))
    return coefficient * (1.0 + error * answers / horizon)
