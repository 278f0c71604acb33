"""Independent checks of grounded answers: plain counting, no model.

No judge uses them. They are how a training is measured by something that it was not trained on,
so they stay simple enough to verify by hand.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from groundrule.data.scenario import Scenario

_WORD = re.compile(r"\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’][^\W\d_]+)*", re.UNICODE)
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_ABSTAINS = re.compile(r"can(?:['’]?t|not| not) find (?:that|this|it|the answer|any)", re.IGNORECASE)

_EMPTY_WORDS = frozenset(
    """a about above after again all also am an and any are as at be because been before being below
    between both but by can can't cannot could did do does doing don't down during each either few for
    from further get had has have having he her here hers him his how i i'm i'll if in into is isn't it
    it's its just let may me might more most must my no nor not of off on once only or other our ours out
    over own please s same shall she should so some such t than that that's the their theirs them then
    there these they they're this those through to too under until up upon us very was we we'll we're were
    what when where which while who whom why will with within without won't would yes you you'll you're
    your yours""".split()
)
"""Words that say nothing about where an answer comes from."""


@dataclass(frozen=True)
class AnswerCheck:
    """What counting says about one answer. None where there is nothing to count."""

    facts: float | None
    """Share of the scenario's key facts that the answer mentions, 0..1."""
    grounded: float | None
    """Share of the answer's content words and numbers that stand in the passage, 0..1.

    None for an answer without content words and for "I can't find that": neither can be grounded.
    """
    unsupported_numbers: int
    unsupported_emails: int
    copied: float
    """Longest run of consecutive words copied from the passage, as a share of the answer's words."""
    words: int
    abstains: bool


def check_answer(answer: str, scenario: Scenario) -> AnswerCheck:
    """Count what an answer takes from its scenario's passage and what it adds."""
    words, passage = words_of(answer), words_of(scenario.context)
    known = set(passage)
    abstains = bool(_ABSTAINS.search(answer))
    content = content_words(answer)
    asked = set(_NUMBER.findall(scenario.question)) | set(_NUMBER.findall(scenario.context))
    return AnswerCheck(
        facts=facts_mentioned(answer, scenario.facts),
        grounded=None if abstains or not content else sum(w in known for w in content) / len(content),
        unsupported_numbers=sum(n not in asked for n in _NUMBER.findall(answer)),
        unsupported_emails=sum(e.lower() not in scenario.context.lower() for e in _EMAIL.findall(answer)),
        copied=longest_run(words, passage) / len(words) if words else 0.0,
        words=len(words),
        abstains=abstains,
    )


def words_of(text: str) -> list[str]:
    """Lower-case words and numbers, in order."""
    return [w.lower().replace("’", "'") for w in _WORD.findall(text)]


def content_words(text: str) -> list[str]:
    """The words that say where a text comes from."""
    return [word for word in words_of(text) if word not in _EMPTY_WORDS]


def facts_mentioned(answer: str, facts: Sequence[Sequence[str]]) -> float | None:
    """Share of the facts of which any alternative stands in the answer as whole words; None without facts."""
    if not facts:
        return None
    text = _plain(answer)
    return fmean(any(_mentions(text, _plain(form)) for form in forms) for forms in facts)


def _mentions(text: str, form: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(form)}(?!\w)", text) is not None


def _plain(text: str) -> str:
    return " ".join(text.lower().replace("’", "'").split())


def longest_run(words: Sequence[str], source: Sequence[str]) -> int:
    """Length of the longest run of consecutive words that also stands in the source."""
    best = 0
    ends = [0] * (len(source) + 1)
    for word in words:
        previous = 0
        for j, other in enumerate(source, start=1):
            previous, ends[j] = ends[j], previous + 1 if word == other else 0
            best = max(best, ends[j])
    return best


def summarise(answers: Sequence[str], scenarios: Sequence[Scenario]) -> dict[str, float]:
    """Means over answers (one a scenario), under the names that reports use.

    `distinct` is the number of different answers over the number of different questions.
    """
    checks = [check_answer(a, s) for a, s in zip(answers, scenarios, strict=True)]
    questions = {(s.question, s.context) for s in scenarios}
    result = {
        "facts": _mean([c.facts for c in checks]),
        "grounded": _mean([c.grounded for c in checks]),
        "unsupported_numbers": _mean([c.unsupported_numbers for c in checks]),
        "unsupported_emails": _mean([c.unsupported_emails for c in checks]),
        "copied": _mean([c.copied for c in checks]),
        "words": _mean([c.words for c in checks]),
        "abstains": _mean([c.abstains for c in checks]),
        "distinct": len({_plain(a) for a in answers}) / len(questions) if questions else None,
    }
    return {name: value for name, value in result.items() if value is not None}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return fmean(known) if known else None
