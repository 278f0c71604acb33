"""Attempts at scenarios: drawing what to try, running many at once, trying again."""

from groundrule.rollouts.gather import GatherCancelled, gather_trajectories, gather_trajectory_groups
from groundrule.rollouts.retry import retry
from groundrule.rollouts.scenarios import draw, load_scenarios

__all__ = [
    "GatherCancelled",
    "draw",
    "gather_trajectories",
    "gather_trajectory_groups",
    "load_scenarios",
    "retry",
]
