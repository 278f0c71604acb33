"""One verifier for any domain: programs, a reference, a rubric, and a prover who tries to fool it."""

from groundrule.rewards.universal.adversary import hunt
from groundrule.rewards.universal.compiling import compile_rubric
from groundrule.rewards.universal.lint import LintFinding, lint_rubric
from groundrule.rewards.universal.ploys import Hunt
from groundrule.rewards.universal.rubric import Rubric, RubricCriterion
from groundrule.rewards.universal.verdict import Verdict
from groundrule.rewards.universal.verifier import UniversalVerifier

__all__ = [
    "Hunt",
    "LintFinding",
    "Rubric",
    "RubricCriterion",
    "UniversalVerifier",
    "Verdict",
    "compile_rubric",
    "hunt",
    "lint_rubric",
]
