"""Answers that no judge may see, because judges let them pass: nothing said, the question said again, broken off.

`rewards.gate` knows the empty ones and the mere openers. Here the question is known too, so its echo can be told from
an answer, and so can a text that ends in the middle of a sentence. Both are recognised by plain rules, for English;
what a reference ends with may end an answer as well.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from groundrule.rewards.checks import words_of
from groundrule.rewards.gate import trivial
from groundrule.rewards.universal.case import Case

_AROUND_AN_ECHO = frozenset(
    """question q problem task prompt user you your asked ask asks the a is was are so ok okay well let let's me us
    i we my think about answer to this that here here's step by solve solution sure certainly great good now need
    want wants know find out understand be will first of""".split()
)
"""Words that add nothing to a question that is said again."""
_LEAST_OF_AN_ECHO = 0.6
"""Share of the question's words, said in one piece and nothing else beside them."""
_SHORTEST_ECHO = 5

_OPEN_WORDS = frozenset(
    """the a an of and or but because therefore thus hence which whose from by into than if its their our your my per
    between equals""".split()
)
"""No sentence ends with these."""
_OFTEN_OPEN_WORDS = frozenset("is are was were to for with that as be will has have".split())
"""These end a sentence only after a pronoun, or in a short one."""
_PRONOUNS = frozenset("it he she they you i we this that there what who".split())
_OPEN_END = re.compile(r"(?:[,\[=+:]|(?<![:;\-])\(|\\boxed\{[^{}]*)$")
_CODE = re.compile(r"[=(){}\[\];`]")
_PROGRAM = re.compile(
    r"^\s*(?:def|class|return|import|function|const|#include|SELECT)\b|;\s*$|```", re.MULTILINE
)
_FEW_WORDS = 4


def empty(case: Case) -> str | None:
    """Why there is nothing to verify by any layer; None where there is something."""
    reason = trivial(case.attempt, case.given)
    if reason is not None and case.flagged:
        return f"nothing is left without what speaks to the grader: {reason}"
    if reason is None and case.is_cut:
        return "the answer was cut off at its length limit"
    return reason


def unfit_for_a_judge(case: Case, references: Sequence[str] = ()) -> str | None:
    """Why a judge must not see the answer; None for one with substance of its own. What agents do is not looked at."""
    if case.acts or not case.answer:
        return None
    if echoes(case.answer, case.question):
        return f"the answer is only an echo of the question: {case.answer[:60]!r}"
    if breaks_off(case.answer, references):
        return f"the answer breaks off: {case.answer[-40:]!r}"
    return None


def echoes(answer: str, question: str) -> bool:
    """Whether the answer says the question, or most of it, and nothing beside."""
    said, asked = words_of(answer), words_of(question)
    if not asked or not said:
        return False
    if said == asked:
        return True
    own, task = f" {' '.join(said)} ", f" {' '.join(asked)} "
    if own in task:
        return len(said) >= max(_SHORTEST_ECHO, _LEAST_OF_AN_ECHO * len(asked))
    before, found, after = own.partition(task)
    return len(asked) >= 3 and bool(found) and set(f"{before} {after}".split()) <= _AROUND_AN_ECHO


def breaks_off(answer: str, references: Sequence[str] = ()) -> bool:
    """Whether the text ends where no text ends."""
    text = answer.rstrip()
    last_line = text.rsplit("\n", 1)[-1]
    if _OPEN_END.search(text):
        return True
    words = words_of(last_line)
    if len(words) < 2 or not text[-1].isalnum() or _CODE.search(last_line) or _PROGRAM.search(text):
        return False
    if not last_line.rstrip().endswith(words[-1]):  # In capitals it is a name: "vitamin A", "option A".
        return False
    if any(words_of(reference)[-1:] == words[-1:] for reference in references):
        return False
    if words[-1] in _OPEN_WORDS:
        return True
    in_one_sentence = not re.search(r"[.!?]\s", last_line)
    return (
        words[-1] in _OFTEN_OPEN_WORDS
        and words[-2] not in _PRONOUNS
        and in_one_sentence
        and len(words) >= _FEW_WORDS
        and words[0] not in ("yes", "no")
    )
