"""GroundRule trains LLM agents with the reward they already have: their own system prompt.

Programs written for OpenPipe ART run with the import changed: `import groundrule as art`. Names that
need torch or openai are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groundrule.backends.local import LocalBackend
    from groundrule.backends.model import Model, TrainableModel, TrainConfig
    from groundrule.data.group import TrajectoryGroup
    from groundrule.data.messages import Tools
    from groundrule.data.scenario import Scenario
    from groundrule.data.score import Score
    from groundrule.data.trajectory import History, MessagesAndChoices, Trajectory
    from groundrule.recipes.train_rl import train_rl
    from groundrule.rollouts.gather import gather_trajectories, gather_trajectory_groups
    from groundrule.rollouts.retry import retry

__version__ = "0.1.0"

_HOMES = {
    "History": "groundrule.data.trajectory",
    "LocalBackend": "groundrule.backends.local",
    "MessagesAndChoices": "groundrule.data.trajectory",
    "Model": "groundrule.backends.model",
    "Scenario": "groundrule.data.scenario",
    "Score": "groundrule.data.score",
    "Tools": "groundrule.data.messages",
    "TrainConfig": "groundrule.backends.model",
    "TrainableModel": "groundrule.backends.model",
    "Trajectory": "groundrule.data.trajectory",
    "TrajectoryGroup": "groundrule.data.group",
    "gather_trajectories": "groundrule.rollouts.gather",
    "gather_trajectory_groups": "groundrule.rollouts.gather",
    "retry": "groundrule.rollouts.retry",
    "train_rl": "groundrule.recipes.train_rl",
}

__all__ = [
    "History",
    "LocalBackend",
    "MessagesAndChoices",
    "Model",
    "Scenario",
    "Score",
    "Tools",
    "TrainConfig",
    "TrainableModel",
    "Trajectory",
    "TrajectoryGroup",
    "gather_trajectories",
    "gather_trajectory_groups",
    "retry",
    "train_rl",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'groundrule' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
