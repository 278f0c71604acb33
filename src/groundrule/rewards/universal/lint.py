"""What is wrong with the criteria of a rubric, found by rules: for English, and without a model.

Weak criteria are what a policy learns to exploit: partial credit for half of a double demand, a topic that is mentioned
and not treated, words that nobody can check. The rules cry wolf now and then; they report, and a person decides.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from groundrule.rewards.checks import content_words, longest_run, words_of
from groundrule.rewards.universal.rubric import Rubric, RubricCriterion

Rule = Literal[
    "compound", "overlap", "vague", "unobservable", "presence_only", "absence", "length", "essential", "count"
]

MOST_WORDS = 30
FEWEST_WORDS = 3
MOST_CRITERIA = 15
SHARED_WORDS = 0.6
"""Share of the content words of the shorter of two criteria."""
SHARED_RUN = 5
"""Words in a row."""

_VERBS = (
    r"(?:is|are|has|have|does|do|must|should|states?|names?|gives?|cites?|quotes?|mentions?|uses?|avoids?|recommends?"
    r"|asks?|explains?|lists?|includes?|contains?|says?|tells?|advises?|warns?|describes?|identifies|identify"
    r"|compares?|shows?|keeps?|ends?|begins?|starts?|refers?|provides?|offers?|answers?|makes?|lets?|calls?|orders?"
    r"|calculates?|reports?|concludes?|addresses|address|distinguishes|distinguish|refuses?|declines?|points?)"
)
_JOINS = re.compile(
    rf"(?:\b(?:and|but)(?: (?:then|also|not|only))?|\bas well as|\bin addition to|[;,] (?:and )?also|;)\s+"
    rf"(?P<second>{_VERBS}\b)?",
    re.IGNORECASE,
)
_SECOND_OBJECT = re.compile(
    r"\b(?:and|as well as)\s+(?:also\s+)?(?:the|a|an|its|their|any|all|at least|no|both)\b", re.IGNORECASE
)
_NO_JOIN = re.compile(
    r"\bbetween\b[^.;]*?\band\b|\bboth\b[^.;]*?\band\b|\bfrom\b[^.;]*?\band\b", re.IGNORECASE
)
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|'[^']{2,}'|`[^`]*`")
_SECOND_SENTENCE = re.compile(r"[.!?]\s+[A-Z]")
_VAGUE = re.compile(
    r"\b(?:good|well|nice|appropriate(?:ly)?|adequate(?:ly)?|proper(?:ly)?|suitabl[ey]|clear(?:ly)?|helpful(?:ly)?"
    r"|high[- ]quality|professional(?:ly)?|relevant|comprehensive(?:ly)?|thorough(?:ly)?|reasonabl[ey]|engaging"
    r"|effective(?:ly)?|sufficient(?:ly)?|concise(?:ly)?|polite(?:ly)?|accurate(?:ly)?|detailed|useful|strong"
    r"|natural(?:ly)?|coherent(?:ly)?|insightful|excellent)\b",
    re.IGNORECASE,
)
_OBSERVABLE = re.compile(
    r"\d|[\"“'`]\w|:|\b(?:states?|names?|cites?|quotes?|lists?|says?|asks?|contains?|begins?|ends?|starts?|calls?"
    r"|e\.g\.|i\.e\.|such as|that is|for example|at most|at least|no more than|fewer than|words?|sentences?)\b",
    re.IGNORECASE,
)
_UNOBSERVABLE = re.compile(
    r"\b(?:understands?|knows?|believes?|thinks?|intends?|tries|try|attempts?|aims?|feels?|cares?|is aware"
    r"|is (?:satisfied|happy|confident)|realises?|realizes?|wants?)\b",
    re.IGNORECASE,
)
_PRESENCE = re.compile(
    r"\b(?:mentions?|includes?|covers?|discusses|discuss|addresses|address|refers? to|touches on|talks? about"
    r"|acknowledges?|considers?|deals? with)\b",
    re.IGNORECASE,
)
_SPECIFIC = re.compile(
    r"\d|[\"“'`]\w|\bthat\b|:"
    r"|\b(?:correct(?:ly)?|true|right(?:ly)?|accurate(?:ly)?|rather than|instead of|as stated)\b",
    re.IGNORECASE,
)
_CORRECT = re.compile(r"\b(?:correct(?:ly)?|true|right(?:ly)?|wrong(?:ly)?|incorrect(?:ly)?|false)\b", re.I)
_ABSENCE = re.compile(
    r"^(?:the answer )?(?:does not|doesn't|do not|is not|isn't|has no|contains no|makes no|gives no|never|no|avoids?"
    r"|refrains?|without)\b",
    re.IGNORECASE,
)
_COMMON = frozenset(
    """answer answers response state states name names give gives say says mention mentions include includes list lists
    contain contains explain explains user question use uses cite cites""".split()
)


@dataclass(frozen=True)
class LintFinding:
    """One thing to mend."""

    rule: Rule
    criteria: tuple[str, ...]
    """The ids; none for the rubric as a whole."""
    message: str

    def __str__(self) -> str:
        return f"{', '.join(self.criteria) or 'rubric'}: {self.rule}: {self.message}"


def lint_rubric(rubric: Rubric) -> list[LintFinding]:
    """What the rules find, criterion by criterion, then between them, then in the whole."""
    single = [finding for criterion in rubric.criteria for finding in _of_one(criterion, rubric.criteria)]
    pairs = [f for a, b in combinations(rubric.criteria, 2) if (f := _overlap(a, b)) is not None]
    return [*single, *pairs, *_of_all(rubric.criteria)]


def _of_one(criterion: RubricCriterion, others: Sequence[RubricCriterion]) -> Iterator[LintFinding]:
    def found(rule: Rule, message: str) -> LintFinding:
        return LintFinding(rule, (criterion.id,), message)

    text, count = criterion.text, len(words_of(criterion.text))
    if (second := _second_demand(text)) is not None:
        yield found(
            "compound", f"joins two demands at {second!r}; write two criteria, or half of it earns credit"
        )
    if count > MOST_WORDS or count < FEWEST_WORDS:
        yield found("length", f"has {count} words; {FEWEST_WORDS} to {MOST_WORDS} can be decided at a glance")
    if criterion.kind == "programmatic":
        return
    if (vague := _VAGUE.search(text)) and not _OBSERVABLE.search(text):
        yield found("vague", f"{vague[0]!r} says nothing that can be seen; say what would be in the answer")
    if inner := _UNOBSERVABLE.search(_QUOTED.sub(" ", text)):
        yield found("unobservable", f"{inner[0]!r} is not in the answer; say by which words one could see it")
    if criterion.kind == "evidence" and _ABSENCE.search(text):
        remedy = 'turn it round with pitfall = true, or make it kind = "judgement"'
        yield found("absence", f"what is not there cannot be quoted, so it could never be met; {remedy}")
    if not criterion.pitfall and _is_presence_only(criterion, others):
        yield found(
            "presence_only",
            "a mere mention meets it, right or wrong; say what is to be said, or add a pitfall for what is wrong",
        )


def _second_demand(text: str) -> str | None:
    """Where a second demand begins; None in a text with one."""
    bare = _NO_JOIN.sub(" ", _QUOTED.sub(" ", text))
    if sentence := _SECOND_SENTENCE.search(bare):
        return bare[sentence.start() : sentence.start() + 30].strip(" .!?")
    for join in _JOINS.finditer(bare):
        if join["second"] and re.search(rf"\b{_VERBS}\b", bare[: join.start()], re.IGNORECASE):
            return bare[join.start() : join.start() + 30].strip()
    if second := _SECOND_OBJECT.search(bare):
        return bare[second.start() : second.start() + 30].strip()
    return None


def _is_presence_only(criterion: RubricCriterion, others: Sequence[RubricCriterion]) -> bool:
    if not _PRESENCE.search(criterion.text) or _SPECIFIC.search(criterion.text):
        return False
    own = _stems(criterion)
    return not any(
        other is not criterion
        and (other.pitfall or _CORRECT.search(other.text))
        and len(own & _stems(other)) >= max(1, len(own) / 2)
        for other in others
    )


def _overlap(one: RubricCriterion, other: RubricCriterion) -> LintFinding | None:
    """A demand and its own pitfall are meant to be alike."""
    if one.pitfall != other.pitfall or "programmatic" in (one.kind, other.kind):
        return None
    first, second = _stems(one), _stems(other)
    shared = first & second
    run = longest_run(words_of(one.text), words_of(other.text))
    least = min(len(first), len(second))
    if run < SHARED_RUN and (len(shared) < 2 or len(shared) < SHARED_WORDS * least):
        return None
    words = ", ".join(sorted(shared)) or f"{run} words in a row"
    return LintFinding(
        "overlap",
        (one.id, other.id),
        f"share {words}; what meets one meets the other and counts twice: merge them",
    )


def _of_all(criteria: Sequence[RubricCriterion]) -> Iterator[LintFinding]:
    if len(criteria) > MOST_CRITERIA:
        yield LintFinding(
            "count", (), f"{len(criteria)} criteria; {MOST_CRITERIA} are read with care at most"
        )
    if not any(criterion.essential for criterion in criteria):
        yield LintFinding(
            "essential", (), "no criterion is essential, so an answer that misses the point scores"
        )


def _stems(criterion: RubricCriterion) -> set[str]:
    """The content words, without a plural's s."""
    words = set(content_words(criterion.text)) - _COMMON
    return {
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
        for word in words
    }
