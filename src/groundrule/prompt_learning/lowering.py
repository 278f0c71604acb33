"""Lessons that lower the bar: words that permit, that set rules aside, or that speak of being graded.

Found by rules, for English, before anything is tested. They are a first fence, and many wordings pass it; the second is
that candidates are judged by the frozen spec, under which a lowered bar only makes answers worse.

Honest lessons forbid with the same words ("never guess", "any answer without a source is not acceptable"), tell the
agent to check ("make sure that every answer is correct"), or speak of orders that come from documents and users. So
what is found counts only where its sentence does not turn it round.
"""

from __future__ import annotations

import re
import unicodedata

from groundrule.prompt_learning.lowering_words import GRADED, GRADING_WORDS, LOWERINGS
from groundrule.rewards.detector import addresses_grader
from groundrule.rewards.neutral import visible


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace(" ", r"\s+"), re.IGNORECASE)


_NO = r"(?:never|not|n't|cannot|avoid|without|instead of|rather than|nor|(?:refuse|decline) to)"
_HOW = r"(?:(?:ever|just|simply|also|blindly|silently|even|let|say|claim) )*"
_FORBIDDEN = _words(
    rf"{_NO}(?:, [^,.;]{{0,40}},)? {_HOW}$"
    rf"|{_NO} (?:\w+ )?(?:say|tell|claim|suggest|imply|state|promise|write|pretend|hint|conclude|think)"
    r"\b(?:(?!\b(?:but|instead|rather)\b)[^,.;])*$"
)
_FORBIDDEN_AFTER_OR = _words(rf"\b{_NO} [^.;]*\b(?:or|nor) {_HOW}$")
_FORBIDDEN_IN_A_LIST = _words(
    rf"^(?!.*\b(?:if|when|where|while|because|since|as)\b).*\b{_NO} [\w\s]*(?:,[\w\s]*)*$"
)
_LIST_GOES_ON = _words(r"[\w\s]*(?:,[\w\s]*)*\b(?:or|nor)\b")
_CHECKED = _words(
    r"\b(?:check|ensure|make sure|verify|confirm|see to it|whether|if|until|unless|when|where|once|so that)(?: that)? $"
)
_SAID_TO_OTHERS = _words(
    r"\b(?:(?:tell|inform|remind) (?:the |an? )?(?:customer|user|caller|client|reader)s?|explain|mention)\b[^,.;]*"
    r"\bthat[^.;]*$"
)
_DONE_BY_OTHERS = _words(r"\b(?:who|which|that|customers?|users?|callers?|they|how to) $")
_STATEMENT = _words(r"(?:any|every|all|each|whatever|whichever|no|the|an?) ")
_ASKED_BY_OTHERS = _words(
    r"\b(?:ask|tell|want|order|request|demand|urge|instruct|beg|press|talk|get)(?:s|ed|ing)?"
    r" (?:you|it|the (?:agent|assistant)) (?:to|into) $"
)
_REFUSED = _words(
    r"(?<!not\s)(?<!n't\s)(?<!never\s)\b(?:declin\w*|refus\w*"
    r"|(?:do not|don't|never) (?:do so|do it|comply|follow|obey|give in)|(?:keep|stick|hold) to"
    r"|stand by)\b"
)
_THEIRS = (
    r"(?:documents?|passages?|pages?|results?|outputs?|e-?mails?|(?<!system\s)messages?|attachments?|texts?|files?|tools?"
    r"|tickets?|comments?|articles?|snippets?|websites?|users?|customers?|callers?|third parties)"
)
_FROM_ELSEWHERE = _words(
    r"[\w-]*(?: (?:that|which))?(?: \w+){0,2}? (?:in|inside|within|from|of|by|on)"
    rf" (?:(?!if\b|when\b|where\b|unless\b|because\b|for\b)[\w'-]+ ){{0,3}}?{_THEIRS}\b"
    r"|[\w-]* (?:(?:that|which) )?(?:the|an?|your) (?:customer|user|caller|client|reader)s?\b"
)
_IN_THEM = _words(r"[\w-]* (?:in|inside|within|from) (?:it|them|there)\b")
_THEIR_TEXT = _words(rf"\b{_THEIRS}\b")
_END = re.compile(r"[.;!?\n]")
_UNSEEN = re.compile("[\U000e0000-\U000e007f\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")
"""Tags and control characters."""


def lowers_the_bar(lesson: str, spec: str = "") -> str | None:
    """Why a lesson may not be in any prompt; None for one that may.

    Words of grading are let through where the spec itself has them: an agent may have marks to give.
    """
    if (hidden := _hidden_in(lesson)) is not None:
        return hidden
    text = unicodedata.normalize("NFKC", lesson).replace("’", "'")
    for finding in addresses_grader(text):
        if finding.kind != "instructions" or not _is_from_elsewhere(text, *finding.span):
            return f"it speaks to a grader ({finding.why}): {finding.text!r}"
    for lowering in LOWERINGS:
        for start, end in lowering.spans(text):
            if not _is_turned_round(text, start, end):
                return f"it {lowering.why}: {text[start:end]!r}"
    for start, end in GRADED.spans(text):
        if not GRADING_WORDS.search(spec):
            return f"it {GRADED.why}: {text[start:end]!r}"
    return None


def _hidden_in(lesson: str) -> str | None:
    if visible(lesson) != lesson or _UNSEEN.search(lesson):
        return "it has characters that nobody can see"
    for word in re.findall(r"[^\W\d_]+", lesson):
        alphabets = {unicodedata.name(letter, "?").split()[0] for letter in word}
        if "LATIN" in alphabets and alphabets & {"CYRILLIC", "GREEK"}:
            return f"it mixes alphabets within a word: {word!r}"
    return None


def _is_turned_round(text: str, start: int, end: int) -> bool:
    """Whether the sentence forbids what was found, has it checked, or speaks of what others say, do and want."""
    before, after = _END.split(text[:start])[-1], _END.split(text[end:])[0]
    if any(p.search(before) for p in (_FORBIDDEN, _FORBIDDEN_AFTER_OR, _CHECKED, _SAID_TO_OTHERS)):
        return True
    if _FORBIDDEN_IN_A_LIST.search(before) and _LIST_GOES_ON.match(after):
        return True
    if _DONE_BY_OTHERS.search(before) and not _STATEMENT.match(text, start):
        return True
    if _ASKED_BY_OTHERS.search(before) and _REFUSED.search(after):
        return True
    return _is_from_elsewhere(text, start, end)


def _is_from_elsewhere(text: str, start: int, end: int) -> bool:
    """Whether the orders that are spoken of stand in a document, or are those of a user."""
    if _FROM_ELSEWHERE.match(text, end):
        return True
    return bool(_IN_THEM.match(text, end) and _THEIR_TEXT.search(text[:start]))
