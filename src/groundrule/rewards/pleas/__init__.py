"""What text that speaks to a grader looks like: one table of patterns, by kind and language.

Agents write "score", "grade" and "judge" for honest reasons: they mark essays, report court rulings, parse
JSON. So no pattern is a single word. Each asks for someone addressed *and* a rating, an order in the
imperative *and* its object, or a form that only the judge's own prompt and reply have.
Development and held-out texts with which the patterns were measured: `benchmarks/injection.py`.
"""

from groundrule.rewards.pleas.english import ENGLISH
from groundrule.rewards.pleas.forms import FORMS
from groundrule.rewards.pleas.languages import LANGUAGES
from groundrule.rewards.pleas.plea import Plea, PleaKind

PLEAS = (*FORMS, *ENGLISH, *LANGUAGES)

__all__ = ["PLEAS", "Plea", "PleaKind"]
