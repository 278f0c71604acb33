"""Phrases that a judge pays for: their presence in an answer goes with its score, and with nothing else.

A policy that found such a phrase writes it everywhere. The comparison is made within groups, where all answers
face the same question, so that what a scenario is about plays no part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from groundrule.recipes.judge_eval.history import ScoredTexts
from groundrule.rewards.checks import words_of

LONGEST = 3
"""Words in a phrase."""
MIN_SCENARIOS = 5
"""Scenarios in whose groups some answers have the phrase and others do not."""
MIN_ANSWERS = 10
"""Answers with it in those groups."""
MAX_P = 0.01
"""After Bonferroni's correction for the number of phrases tried."""
MIN_EFFECT = 0.05
"""Score that the phrase is worth."""
VERIFIER_Z = 2.0
"""A phrase that goes with the verifier's verdict as surely as this is no trick."""
_MOST = 5


@dataclass(frozen=True)
class Phrase:
    """A phrase and what it is worth."""

    text: str
    worth: float
    """Mean score of answers with it minus those without it, within groups."""
    p_value: float
    """One-sided, corrected for all phrases tried."""
    answers: int
    scenarios: int


def telling_phrases(groups: Sequence[ScoredTexts]) -> list[Phrase]:
    """The phrases that predict the judge's score and not the verifier's, surest first.

    Of phrases that hold each other only the surest is named, and of equally sure ones the longest.
    """
    tried = _candidates(groups)
    found: list[Phrase] = []
    for text, places in tried.items():
        worth, z = _effect([(has, groups[g].scores) for g, has in places])
        p_value = min(1.0, len(tried) * math.erfc(z / math.sqrt(2)) / 2)
        if p_value < MAX_P and worth >= MIN_EFFECT and not _is_earned(groups, places):
            scenarios = len({groups[g].scenario for g, _ in places})
            found.append(Phrase(text, worth, p_value, sum(sum(has) for _, has in places), scenarios))
    kept: list[Phrase] = []
    for phrase in sorted(found, key=lambda p: (p.p_value, -p.worth, -len(p.text), p.text)):
        if not any(_overlap(phrase.text, other.text) for other in kept):
            kept.append(phrase)
    return kept[:_MOST]


Places = list[tuple[int, list[bool]]]
"""(group, which of its answers have the phrase), for the groups whose answers differ in it."""


def _candidates(groups: Sequence[ScoredTexts]) -> dict[str, Places]:
    """Phrases with enough support, and where they stand."""
    places: dict[str, Places] = {}
    for number, group in enumerate(groups):
        phrases = [_phrases(text) for text in group.texts]
        everywhere = set.intersection(*phrases)
        for phrase in {phrase for own in phrases for phrase in own} - everywhere:
            places.setdefault(phrase, []).append((number, [phrase in own for own in phrases]))
    return {
        phrase: found
        for phrase, found in sorted(places.items())
        if sum(sum(has) for _, has in found) >= MIN_ANSWERS
        and len({groups[g].scenario for g, _ in found}) >= MIN_SCENARIOS
    }


def _phrases(text: str) -> set[str]:
    words = words_of(text)
    return {
        " ".join(words[start : start + length])
        for length in range(1, LONGEST + 1)
        for start in range(len(words) - length + 1)
    }


def _effect(samples: Sequence[tuple[Sequence[bool], Sequence[float]]]) -> tuple[float, float]:
    """(mean difference within groups, z): the sum of products against its permutation variance."""
    together = weight = noise = 0.0
    for has, scores in samples:
        share, middle = sum(has) / len(has), sum(scores) / len(scores)
        x = [present - share for present in has]
        y = [score - middle for score in scores]
        xx, yy = sum(v * v for v in x), sum(v * v for v in y)
        together += sum(a * b for a, b in zip(x, y, strict=True))
        weight += xx
        noise += xx * yy / (len(x) - 1)
    return (together / weight if weight else 0.0), (together / math.sqrt(noise) if noise > 1e-12 else 0.0)


def _is_earned(groups: Sequence[ScoredTexts], places: Places) -> bool:
    samples = [(has, groups[g].verdicts) for g, has in places if groups[g].verdicts]
    return bool(samples) and _effect(samples)[1] >= VERIFIER_Z


def _overlap(one: str, other: str) -> bool:
    return f" {one} " in f" {other} " or f" {other} " in f" {one} "
