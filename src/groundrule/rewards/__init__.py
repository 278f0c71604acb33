"""Groups in, scores out: what a judge reads, what it answers, and how that becomes a reward."""

from groundrule.errors import JudgeReplyError
from groundrule.rewards.apply import apply_scores
from groundrule.rewards.parse import TrajectoryScore, parse_judge_reply
from groundrule.rewards.prompt import DEFAULT_RUBRIC
from groundrule.rewards.ruler import Ruler, ruler, ruler_score_group

__all__ = [
    "DEFAULT_RUBRIC",
    "JudgeReplyError",
    "Ruler",
    "TrajectoryScore",
    "apply_scores",
    "parse_judge_reply",
    "ruler",
    "ruler_score_group",
]
