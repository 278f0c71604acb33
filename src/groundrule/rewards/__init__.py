"""Groups in, scores out: what a judge reads, what it answers, and how that becomes a reward."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from groundrule.rewards.universal import Rubric, UniversalVerifier, compile_rubric, hunt, lint_rubric

_WHEN_USED = ("Rubric", "UniversalVerifier", "compile_rubric", "hunt", "lint_rubric")
"""Imported when they are first asked for, from `universal`."""

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
    "Rubric",
    "Ruler",
    "TrajectoryScore",
    "UniversalVerifier",
    "apply_scores",
    "compile_rubric",
    "extract_checklist",
    "hunt",
    "lint_rubric",
    "parse_judge_reply",
    "ruler",
    "ruler_score_group",
]


def __getattr__(name: str) -> Any:
    if name not in _WHEN_USED:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.universal"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
