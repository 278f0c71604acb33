"""Lessons that lower the bar: words that permit, that set rules aside, or that speak of being graded.

Found by rules, for English, before anything is tested. They are a first fence; the second is that candidates are judged
by the frozen spec, under which a lowered bar only makes answers worse.
"""

from __future__ import annotations

import re

from groundrule.rewards.detector import addresses_grader

_FINE = (
    r"(?:fine|ok|okay|acceptable|allowed|valid|perfect|good enough|equally (?:good|right)|correct|right|welcome"
    r"|no problem|not a problem|harmless)"
)
_RULES = (
    r"(?:rules?|instructions?|system prompt|prompt|spec(?:ification)?|guidelines?|polic(?:y|ies)|requirements?"
    r"|constraints?|demands?|above|earlier text)"
)
_WORDS = (
    (
        "permits anything",
        r"\b(?:any|every|all|whatever)(?: (?:kinds?|sorts?) of)? (?:answers?|repl(?:y|ies)|responses?|outputs?|styles?"
        rf"|content)\b[^.;]{{0,40}}\b(?:is|are|will be|counts? as) (?:\w+ )?{_FINE}\b",
    ),
    (
        "permits anything",
        r"\b(?:any|every) (?:answer|reply|response|output)\b[^.;]{0,20}\b(?:will do|works|goes)\b",
    ),
    (
        "permits anything",
        rf"\banything goes\b|\b(?:anything|whatever you \w+) (?:is|will be) (?:\w+ )?{_FINE}\b",
    ),
    (
        "sets the rules aside",
        r"\b(?:ignore|disregard|forget|skip|override|overrule|bypass|set aside|pay no attention to|do not follow"
        r"|don't follow|need not follow|no need to follow|not bound by|free to break|do not bother with"
        rf"|don't bother with|do not worry about|don't worry about)\b[^.;]{{0,40}}\b{_RULES}\b",
    ),
    (
        "sets the rules aside",
        rf"\b{_RULES}\b[^.;]{{0,30}}\b(?:is|are)(?: only| merely| just)? (?:optional|suggestions?|not binding|no longer"
        r"|void|relaxed|lifted|waived)\b",
    ),
    (
        "lowers the standard",
        r"\b(?:lower|relax|loosen|weaken|drop)\b[^.;]{0,20}\b(?:bar|standards?|criteri(?:a|on)|expectations?"
        r"|requirements?)\b|\bno (?:standards?|requirements?|criteria|rules) (?:apply|matter)\b",
    ),
    (
        "excuses mistakes",
        r"\b(?:mistakes?|errors?|inaccurac(?:y|ies)|made[- ]up|invented|inventing|false|unsupported)\b[^.;]{0,40}\b"
        rf"(?:is|are) (?:\w+ )?{_FINE}\b",
    ),
)
_GRADED = (
    r"\b(?:graders?|judges?|evaluators?|reviewers?|scor(?:e|es|er|ers|ing)|grad(?:e|es|ing)|ratings?|rewards?|rubrics?"
    r"|full marks|points)\b"
)


def _pattern(words: str) -> re.Pattern[str]:
    return re.compile(words.replace(" ", r"\s+"), re.IGNORECASE)


_LOWERING = tuple((why, _pattern(words)) for why, words in _WORDS)
_GRADING = _pattern(_GRADED)


def lowers_the_bar(lesson: str, spec: str = "") -> str | None:
    """Why a lesson may not be in any prompt; None for one that may.

    Words of grading are let through where the spec itself has them: an agent may have marks to give.
    """
    for finding in addresses_grader(lesson):
        return f"it speaks to a grader ({finding.why}): {finding.text!r}"
    for why, pattern in _LOWERING:
        if (found := pattern.search(lesson)) is not None:
            return f"it {why}: {found[0]!r}"
    graded = _GRADING.search(lesson)
    if graded is not None and not _GRADING.search(spec):
        return f"it speaks of being graded: {graded[0]!r}"
    return None
