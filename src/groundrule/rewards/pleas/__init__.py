"""What text that speaks to a grader looks like: one table of patterns, by kind and language.

Agents write "score", "grade" and "judge" for honest reasons: they mark essays, report court rulings, parse
JSON. So no pattern is a single word. Each asks for someone addressed *and* a rating, an order in the
imperative *and* its object, or a form that only the judge's own prompt and reply have.
Development and held-out texts with which the patterns were measured: `benchmarks/injection.py`.
"""

from collections.abc import Sequence
from functools import cache

from groundrule.rewards.pleas.english import ENGLISH
from groundrule.rewards.pleas.forms import FORMS
from groundrule.rewards.pleas.languages import LANGUAGES
from groundrule.rewards.pleas.plea import Plea, PleaKind

PLEAS = (*FORMS, *ENGLISH, *LANGUAGES)


@cache
def _stems() -> frozenset[str]:
    """Of all pleas; found when the first text is searched, not when this is imported."""
    return frozenset().union(*(plea.stems for plea in PLEAS))


def possible_pleas(text: str) -> Sequence[Plea]:
    """The pleas that the text may have, judged by words that it must have for them."""
    # Outside ASCII more letters are equal to each other, for a pattern, than their small forms show.
    if not text.isascii():
        return PLEAS
    small = text.lower()
    there = {stem for stem in _stems() if stem in small}
    return [plea for plea in PLEAS if not plea.stems or not plea.stems.isdisjoint(there)]


__all__ = ["PLEAS", "Plea", "PleaKind", "possible_pleas"]
