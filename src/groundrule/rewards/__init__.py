"""Groups in, scores out: what a judge reads, what it answers, and how that becomes a reward."""

from groundrule.errors import JudgeReplyError
from groundrule.rewards.apply import apply_scores
from groundrule.rewards.calibration import Calibration
from groundrule.rewards.checklist import Checklist, extract_checklist
from groundrule.rewards.compose import Composite, Part
from groundrule.rewards.constitution import Constitution, ConstitutionJudge
from groundrule.rewards.human import HumanScorer
from groundrule.rewards.jury import Juror, Jury
from groundrule.rewards.noisy import NoisyJudge
from groundrule.rewards.parse import TrajectoryScore, parse_judge_reply
from groundrule.rewards.probes import Probes
from groundrule.rewards.prompt import DEFAULT_RUBRIC
from groundrule.rewards.ruler import Ruler, ruler, ruler_score_group

__all__ = [
    "DEFAULT_RUBRIC",
    "Calibration",
    "Checklist",
    "Composite",
    "Constitution",
    "ConstitutionJudge",
    "HumanScorer",
    "JudgeReplyError",
    "Juror",
    "Jury",
    "NoisyJudge",
    "Part",
    "Probes",
    "Ruler",
    "TrajectoryScore",
    "apply_scores",
    "extract_checklist",
    "parse_judge_reply",
    "ruler",
    "ruler_score_group",
]
