"""Plain data: messages, trajectories, groups, scores, scenarios, runs, and the seams between layers."""

from groundrule.data.answers import Answer
from groundrule.data.group import PendingGroup, RolloutException, TrajectoryGroup
from groundrule.data.messages import Message, Tools
from groundrule.data.preferences import PreferencePair, Ranking
from groundrule.data.protocols import (
    ChatClient,
    ChatReply,
    ChatRequest,
    Learner,
    Policy,
    Rollout,
    Scorer,
    Update,
    Usage,
)
from groundrule.data.scenario import Scenario
from groundrule.data.score import Score
from groundrule.data.trajectory import History, MessagesAndChoices, Trajectory, Transition

__all__ = [
    "Answer",
    "ChatClient",
    "ChatReply",
    "ChatRequest",
    "History",
    "Learner",
    "Message",
    "MessagesAndChoices",
    "PendingGroup",
    "Policy",
    "PreferencePair",
    "Ranking",
    "Rollout",
    "RolloutException",
    "Scenario",
    "Score",
    "Scorer",
    "Tools",
    "Trajectory",
    "TrajectoryGroup",
    "Transition",
    "Update",
    "Usage",
]
