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
def _by_stem() -> tuple[tuple[str, tuple[int, ...]], ...]:
    """For each piece of ASCII text the places of the pleas that need it or another; "" for those that need none.

    Found when the first text is searched, not when this is imported.
    """
    places: dict[str, list[int]] = {}
    for place, plea in enumerate(PLEAS):
        for stem in plea.stems[0] if plea.stems else ("",):
            places.setdefault(stem, []).append(place)
    return tuple((stem, tuple(found)) for stem, found in places.items() if stem.isascii())


def possible_pleas(text: str, among: Sequence[Plea] | None = None) -> Sequence[Plea]:
    """The pleas that the text may have, judged by words that it must have for them.

    `among` are those that a longer text may have of which this one is a part.
    """
    # Outside ASCII more letters are equal to each other, for a pattern, than their small forms show.
    if not text.isascii():
        return PLEAS
    small = text.lower()
    if among is not None:
        return [plea for plea in among if plea.is_possible(small)]
    places = {place for stem, found in _by_stem() if stem in small for place in found}
    return [PLEAS[place] for place in sorted(places) if PLEAS[place].is_possible(small)]


__all__ = ["PLEAS", "Plea", "PleaKind", "possible_pleas"]
