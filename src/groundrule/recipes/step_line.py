"""What a training says of a step that is done, in a line."""

from __future__ import annotations

from collections.abc import Mapping

Metrics = Mapping[str, float | None]


def step_line(step: int, steps: int, metrics: Metrics, seconds: float) -> str:
    """The reward, and what else tells whether the step went well."""
    head, said = f"step {step}/{steps}", _of_ppo if "ppo/trajectories" in metrics else _of_groups
    return f"{head}: {said(metrics)}, {seconds:.0f} s"


def _of_groups(metrics: Metrics) -> str:
    if not metrics.get("train/updated"):
        return "no signal, nothing learned (`groundrule doctor` says why)"
    return (
        f"reward {metrics['reward/mean']:.3f} (spread within groups {metrics['reward/group_std']:.3f}), "
        f"{metrics['train/sequences']:.0f} answers"
    )


def _of_ppo(metrics: Metrics) -> str:
    if "reward/mean" not in metrics:
        return "no answer has a score, nothing learned (`groundrule doctor` says why)"
    moved = "" if metrics.get("ppo/updated") else ", the policy stays"
    fit = metrics.get("critic/explained_variance")
    critic = "" if fit is None else f", critic explains {fit:.2f}"
    return (
        f"reward {metrics['reward/mean']:.3f}, KL {metrics['ppo/kl_answer']:.2f} nats an answer{critic}{moved}, "
        f"{metrics['ppo/trajectories']:.0f} answers"
    )
