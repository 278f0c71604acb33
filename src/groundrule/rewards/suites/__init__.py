"""Groups whose order is known: the suite that comes with the library, and files with labels."""

from groundrule.rewards.suites.known import AREAS, KnownGroup, LabelledFile, known_suite, read_labelled
from groundrule.rewards.suites.labels import Known, known_from

__all__ = ["AREAS", "Known", "KnownGroup", "LabelledFile", "known_from", "known_suite", "read_labelled"]
