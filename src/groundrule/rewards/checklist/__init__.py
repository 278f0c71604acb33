"""The spec as a checklist: its demands one by one, each judged apart, with a quote as evidence."""

from groundrule.rewards.checklist.criteria import Checklist, Criterion
from groundrule.rewards.checklist.extract import extract_checklist

__all__ = ["Checklist", "Criterion", "extract_checklist"]
