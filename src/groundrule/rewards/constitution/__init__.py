"""Written principles as the source of feedback: critiques, revisions, comparisons (Bai et al. 2022)."""

from groundrule.rewards.constitution.judge import ConstitutionJudge
from groundrule.rewards.constitution.principles import Constitution, Exemplar, Principle

__all__ = ["Constitution", "ConstitutionJudge", "Exemplar", "Principle"]
